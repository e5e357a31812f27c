# SPDX-License-Identifier: GPL-3.0-or-later
"""The verb ``watch``: what it tells before and after an end, and what ``why`` takes of its report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits import cli, judge_end
from mlhost_limits.watch.report import FORMAT, format_left, warn
from mlhost_limits.watch.reports_read import parse_report
from mlhost_limits.watch.trends import Level, Trend
from mlhost_limits.why.reasons import CGROUP, NOFILE

from tests.places.watch.test_run_measure import MAIN, TOP

NOBODY = 64321
CLIMB = (
    "import resource, time\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
    "held = []\n"
    "while True:\n"
    "    held.append(open('/etc/passwd')); time.sleep(0.01)\n"
)


@pytest.fixture(autouse=True)
def _no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_end, "_check_place", lambda _raw: ())


def watch(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, str(TOP), "watch", *words],
        capture_output=True, text=True, check=False, timeout=60, cwd=folder,
    )  # fmt: skip


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = cli.main(["why", *words])
    told = capsys.readouterr()
    return status, told.out + told.err


def test_a_run_that_climbs_is_told_before_and_named_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = watch(tmp_path, "--report", "run.json", "--", sys.executable, "-c", CLIMB)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    early = [one for one in lines if "at this rate" in one]
    assert len(early) == 1
    assert early[0].startswith("mlhost-limits: nofile: process ")
    assert "; ulimit -Sn in the shell" in early[0]
    assert done.stderr.index(early[0]) < done.stderr.index("Too many open files")
    assert "limit: the process had as many files open as its soft limit allows (nofile)" in lines
    told = json.loads((tmp_path / "run.json").read_text())
    assert (told["format"], told["version"]) == (FORMAT, 1)
    assert (told["reason"], told["sure"], told["is_limit"]) == ("nofile", "shown by the host", True)
    assert told["end"]["status"] == 1
    (level,) = [one for one in told["limits"] if one["item"] == "nofile"]
    assert level["percent"] >= 99.0
    assert level["grew_since"]
    status, answer = ask(capsys, str(tmp_path / "run.json"))
    assert status == 1
    assert answer.startswith("limit: the process had as many files open")
    assert "sure shown by the host" in answer


def test_an_end_of_its_own_is_no_limits(tmp_path: Path) -> None:
    done = watch(tmp_path, "--", "sh", "-c", "sleep 0.5; exit 3")
    assert done.returncode == 3
    assert "no limit was near" in done.stderr.splitlines()


def test_a_run_that_goes_well_is_not_talked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = watch(tmp_path, "--report", "run.json", "--", "sleep", "0.2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    told = json.loads((tmp_path / "run.json").read_text())
    assert told["reason"] == ""
    status, answer = ask(capsys, str(tmp_path / "run.json"))
    assert status == 2
    assert "did not fail" in answer


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no command follows --"),
        (("sleep", "1"), "unrecognized arguments: sleep 1"),
        (("--",), "no command follows --"),
        (("--report", "absent/run.json", "--", "touch", "ran"), "is not a directory"),
        (("--report", "mine.txt", "--", "touch", "ran"), "not replaced"),
    ],
)
def test_what_is_refused_is_not_run(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    (tmp_path / "mine.txt").write_text("my own words\n")
    done = watch(tmp_path, *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "mine.txt").read_text() == "my own words\n"


def test_a_report_replaces_an_older_one_and_holds_no_arguments(tmp_path: Path) -> None:
    for word in ("first", "second"):
        watch(tmp_path, "--report", "run.json", "--", "sh", "-c", f": --token={word}")
    text = (tmp_path / "run.json").read_text()
    assert "token" not in text
    assert json.loads(text)["name"] == "sh"


@pytest.mark.root
def test_root_replaces_no_file_of_a_user(tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    report.write_text(f'{{"format": "{FORMAT}"}}')
    os.chown(report, NOBODY, NOBODY)
    done = watch(tmp_path, "--report", "run.json", "--", "touch", "ran")
    assert done.returncode == 2
    assert f"belongs to uid {NOBODY}" in done.stderr
    assert not (tmp_path / "ran").exists()


REPORT: dict[str, Any] = {
    "format": FORMAT,
    "version": 1,
    "name": "python3",
    "uid": 0,
    "cgroup": "0::/",
    "reason": "nofile",
    "others": [],
    "item": "nofile",
    "sure": "shown by the host",
    "host": ["process 7 (python3) had 1024 of 1024 (nofile, 100%) before it ended"],
    "group": "",
}


def write(folder: Path, **more: object) -> str:
    path = folder / "run.json"
    path.write_text(json.dumps({**REPORT, **more}, indent=1))
    return str(path)


@pytest.mark.root
def test_root_takes_a_users_report_for_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path)
    os.chown(path, NOBODY, NOBODY)
    Path(path).chmod(0o644)
    for folder in (tmp_path, *tmp_path.parents):
        if "pytest" in str(folder):
            folder.chmod(0o755)
    status, answer = ask(capsys, path)
    assert status == 1
    assert "sure fits the words" in answer
    assert "who may have written anything" in " ".join(answer.split())


@pytest.mark.parametrize(
    ("message", "more", "status", "head", "sure"),
    [
        # The words mean several, and the report shows which.
        ("Killed", {"reason": "cgroup-memory", "item": "memory.max"}, 1,
         "limit: the kernel killed it because a cgroup", "shown by the host"),
        # The words mean something else, which the report does not undo.
        ("KeyError: 'x'", {}, 0, "no limit: the program ended by an error", "fits the words"),
        ("OSError: [Errno 24] Too many open files", {"reason": "exception", "item": ""}, 1,
         "limit: the process had as many files open", "fits the words"),
    ],
)  # fmt: skip
def test_words_and_a_report_are_told_together(
    message: str,
    more: dict[str, Any],
    status: int,
    head: str,
    sure: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "train.log").write_text(f"{message}\n")
    ended, answer = ask(capsys, str(tmp_path / "train.log"), write(tmp_path, **more))
    assert ended == status
    assert answer.startswith(head)
    assert f"sure {sure}" in answer


@pytest.mark.parametrize(
    "more",
    [
        {"version": 2},
        {"reason": "nonesuch"},
        {"others": 3},
        {"host": None},
        {"uid": "x"},
        {"uid": [], "reason": "nofile"},
        {"reason": ["nofile"]},
    ],
)
def test_a_report_that_is_none_is_refused_in_a_sentence(
    more: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = ask(capsys, write(tmp_path, **more))
    assert status == 2
    assert answer.count("\n") == 1
    with pytest.raises(ValueError, match="report of watch"):
        parse_report(json.dumps({**REPORT, **more}))


def test_a_report_that_was_cut_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path)
    Path(path).write_text(Path(path).read_text()[:-20])
    assert ask(capsys, path)[0] == 2


def test_what_a_report_says_is_printed_without_its_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(capsys, write(tmp_path, host=["\x1b[31mred\nlimit: lie"]))[1]
    assert "\x1b" not in answer
    assert "\nlimit: lie" not in answer


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.2, "less than 1 s"), (1, "1 s"), (89, "89 s"), (91, "2 min"), (3000, "50 min")],
)
def test_what_is_left_is_told_as_people_say_it(seconds: float, told: str) -> None:
    assert format_left(seconds) == told


@pytest.mark.parametrize(
    ("level", "told"),
    [
        (
            Level(NOFILE, 900, 1024, "process 7 (x)", 7, "nofile"),
            "nofile: process 7 (x) has 900 of 1024 (88%), full in 2 min at this rate; ulimit -Sn",
        ),
        (
            Level(CGROUP, 9 * 2**29, 5 * 2**30, "/sys/fs/cgroup/a", 0, "memory.max"),
            "memory.max: /sys/fs/cgroup/a has 4.5 GiB of 5.0 GiB (90%), full in",
        ),
        (
            Level("mappings", 60000, 65530, "process 7 (x)", 7, "vm.max_map_count"),
            "vm.max_map_count: process 7 (x) has 60000 of 65530 (92%), full in",
        ),
    ],
)
def test_a_warning_is_one_line_with_the_limit_the_time_and_the_fix(level: Level, told: str) -> None:
    trend = Trend(level._replace(used=level.used * 9 // 10), 0.0)
    trend.follow(level, 90.0)
    line = warn(trend, "session")
    assert line.startswith(told)
    assert "\n" not in line
    assert len(line.rpartition("; ")[2]) > 10
