# SPDX-License-Identifier: GPL-3.0-or-later
"""What lets a node check itself is written once, refused where it is another's, and taken back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mlhost_limits.core.edit import HEADER
from mlhost_limits.node.paths import POLICY
from mlhost_limits.node.plan import (
    BLACK_BOX,
    FIRST_BOOT,
    HEALTH,
    PROGRAM,
    SERVICE,
    TIMER,
    Monitor,
    plan_monitor,
)

WANTED = Monitor("{}\n", "/var/lib/node-exporter")


def write(wanted: Monitor = WANTED) -> dict[str, bytes]:
    plan = plan_monitor(wanted, b"program", {})
    assert not plan.problems
    return {edit.path: edit.after or b"" for edit in plan.edits}


def read(path: str, **changes: object) -> list[str]:
    return write(WANTED._replace(**changes))[path].decode().splitlines()


def test_a_second_run_changes_nothing() -> None:
    assert plan_monitor(WANTED, b"program", write()).edits == ()


def test_what_is_taken_back_is_all_that_was_written() -> None:
    files = {**write(), "/var/lib/node-exporter/mlhost-limits.prom": b"x"}
    plan = plan_monitor(WANTED._replace(absent=True), b"", files)
    assert {edit.path: edit.after for edit in plan.edits} == dict.fromkeys(files)
    folders = {edit.path for edit in plan.edits if edit.with_folder}
    assert folders == {PROGRAM, HEALTH, POLICY}


def test_programs_can_be_started_and_a_diff_shows_no_archive() -> None:
    edits = {edit.path: edit for edit in plan_monitor(WANTED, b"program", {}).edits}
    assert {path for path, edit in edits.items() if edit.mode == 0o755} == {PROGRAM, HEALTH}
    assert {edit.mode for edit in edits.values()} == {0o755, 0o644}
    assert [path for path, edit in edits.items() if edit.hidden] == [PROGRAM]


def test_the_service_may_write_the_metrics_and_nothing_else() -> None:
    lines = read(SERVICE)
    assert "ReadWritePaths=/var/lib/node-exporter" in lines
    assert "PrivateNetwork=yes" in lines
    assert any(
        line.endswith("--metrics /var/lib/node-exporter/mlhost-limits.prom") for line in lines
    )


def test_without_metrics_it_writes_nowhere() -> None:
    text = "\n".join(read(SERVICE, textfiles=""))
    assert "ReadWritePaths" not in text
    assert "--metrics" not in text


def test_sysctls_of_the_network_are_read_where_they_are() -> None:
    assert "PrivateNetwork=no" in read(SERVICE, uses_net=True)


@pytest.mark.parametrize(("canary", "said"), [("never", False), ("auto", True)])
def test_it_starts_something_only_when_asked(canary: str, said: bool) -> None:
    assert ("--canary" in "\n".join(read(SERVICE, canary=canary))) == said


def test_the_unit_fails_by_every_status_but_0() -> None:
    """Python ends with 1 where it crashes, as check does where a host falls short."""
    lines = read(SERVICE)
    assert not any("SuccessExitStatus" in line for line in lines)
    assert any("monitor --exit-zero --policy" in line for line in lines)
    assert "OOMPolicy=continue" in lines


@pytest.mark.parametrize(("asked", "word"), [(True, "True"), (False, "False")])
def test_slurm_drains_a_node_that_cannot_be_checked_only_where_asked(
    asked: bool, word: str
) -> None:
    assert f"    status = main(drain_on_error={word})" in read(HEALTH, drain_on_error=asked)


@pytest.mark.parametrize(
    ("library", "job", "status"),
    [
        ("", "", 2),
        ("", "7", 0),
        ("def main(**_): return 1", "7", 1),
        ("def main(**_): return 2", "", 2),
        ("def main(**_): raise MemoryError", "7", 0),
        ("def main(**_): raise MemoryError", "", 2),
    ],
)
def test_a_program_that_cannot_start_fails_no_prolog(
    tmp_path: Path, library: str, job: str, status: int
) -> None:
    text = "\n".join(read(HEALTH)).replace(PROGRAM, str(tmp_path))
    package = tmp_path / "mlhost_limits"
    package.mkdir()
    (package / "__init__.py").touch()
    if library:
        (package / "node_health.py").write_text(library)
    names = {"SLURM_JOB_ID": job} if job else {}
    words = [sys.executable, "-I", "-c", text]
    done = subprocess.run(words, env=names, capture_output=True, text=True)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_python_may_lie_in_a_hidden_folder() -> None:
    lines = read(SERVICE, python="/srv/.venv/bin/..python")
    assert any(line.startswith("ExecStart=/srv/.venv/bin/..python ") for line in lines)


def test_the_timer_heeds_no_clock() -> None:
    lines = read(TIMER, interval="30s")
    assert "OnUnitActiveSec=30s" in lines
    assert not any("OnCalendar" in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"interval": "5min\nUser=x"}, "interval: '5min\\nUser=x' was given; accepted is a time"),
        ({"interval": ""}, "interval: '' was given; accepted is a time such as 5min"),
        ({"textfiles": "a"}, "textfile_directory: 'a' was given; accepted is an absolute path"),
        ({"textfiles": "/a b"}, "textfile_directory: '/a b' was given"),
        ({"textfiles": "/a/../b"}, "textfile_directory: '/a/../b' was given"),
        ({"textfiles": "/a/."}, "textfile_directory: '/a/.' was given"),
        ({"python": "python3"}, "python: 'python3' was given; accepted is the absolute path"),
    ],
)
def test_what_would_break_a_unit_is_refused(changes: dict[str, str], problem: str) -> None:
    plan = plan_monitor(WANTED._replace(**changes), b"", {})
    assert len(plan.problems) == 1
    assert plan.problems[0].startswith(problem)
    assert not plan.edits


def test_a_unit_of_somebody_else_stays() -> None:
    plan = plan_monitor(WANTED, b"", {SERVICE: b"[Unit]\n", TIMER: HEADER.encode()})
    assert plan.problems == (f"{SERVICE}: is of somebody else; move it out of the way first",)


def test_a_check_at_the_first_boot_is_there_only_when_asked_for() -> None:
    asked = WANTED._replace(first_boot=True)
    assert FIRST_BOOT not in write()
    files = write(asked)
    assert plan_monitor(asked, b"program", files).edits == ()
    for other in (WANTED, asked._replace(absent=True)):
        after = {edit.path: edit.after for edit in plan_monitor(other, b"program", files).edits}
        assert after[FIRST_BOOT] is None


def test_the_first_boot_is_checked_once_and_its_result_is_never_half_written() -> None:
    lines = read(FIRST_BOOT, first_boot=True)
    assert "ConditionPathExists=!/var/lib/mlhost-limits/first-boot.json" in lines
    (start,) = [line for line in lines if line.startswith("ExecStart=")]
    assert "> first-boot.new; found=$?; mv first-boot.new first-boot.json" in start


def test_the_black_box_may_hear_how_processes_end_and_write_what_it_keeps() -> None:
    lines = read(BLACK_BOX, black_box=True)
    assert not any(line.startswith("PrivateNetwork") for line in lines)
    assert any(line.endswith("mlhost-limits-black-box.prom") for line in lines)
    assert "StateDirectory=mlhost-limits/ends" in lines
    assert "ReadWritePaths=-/var/lib/node-exporter" in lines  # Which may not be there yet.
    assert not any("--metrics" in line for line in read(BLACK_BOX, black_box=True, textfiles=""))


def test_a_black_box_that_nobody_wants_any_more_goes() -> None:
    files = write(WANTED._replace(black_box=True))
    assert plan_monitor(WANTED._replace(black_box=True), b"program", files).edits == ()
    (edit,) = plan_monitor(WANTED, b"program", files).edits
    assert (edit.path, edit.after) == (BLACK_BOX, None)
    assert BLACK_BOX not in write()
