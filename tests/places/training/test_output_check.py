# SPDX-License-Identifier: GPL-3.0-or-later
"""The output directory of a run is judged on the disk that it lies on, beside what runs there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.finding import Finding
from mlhost_limits.training import output_check
from mlhost_limits.training.open_files_read import OpenFile
from mlhost_limits.training.output_check import (
    check_output,
    find_writers,
    read_checkpoints,
    read_processes,
)
from mlhost_limits.training.policy import Training

from tests.worlds.archives import make_pt, make_safetensors


@pytest.fixture
def top() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def save(top: Path, number: int, changed: float = 0) -> Path:
    """Write a checkpoint as the Trainer does."""
    folder = top / f"checkpoint-{number}"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(make_safetensors())
    for name in ("optimizer.pt", "scheduler.pt", "training_args.bin", "rng_state.pth"):
        (folder / name).write_bytes(make_pt())
    (folder / "config.json").write_text("{}")
    (folder / "trainer_state.json").write_text("{}")
    os.utime(folder / "trainer_state.json", (changed or number, changed or number))
    return folder


def look(top: Path, **stated: Any) -> dict[str, Finding]:
    training = Training(output_dir=str(top), **stated)
    return {one.requirement.item: one for one in check_output(training)}


def codes(finding: Finding) -> list[str]:
    return [cause.code for cause in finding.causes]


def test_a_sound_output_passes(top: Path) -> None:
    save(top, 100)
    save(top, 0)
    for name in ("tmp-checkpoint-200", ".cache", ".ipynb_checkpoints"):
        (top / name).mkdir()
    found = look(top, checkpoint_size=1, save_total_limit=2, resume=True)
    assert {one.status for one in found.values()} == {"pass"}
    items = ["directory", "rename", "directory rename", "checkpoints", "other runs", "free space"]
    assert list(found) == items
    assert not list(check_output(Training()))


@pytest.mark.slow
def test_every_truncation_of_the_newest_is_seen(top: Path) -> None:
    save(top, 50)
    folder = save(top, 100)
    names = ("trainer_state.json", "config.json", "model.safetensors", "optimizer.pt")
    for name in (*names, "scheduler.pt", "rng_state.pth"):
        whole = (folder / name).read_bytes()
        for size in (0, len(whole) // 2):
            (folder / name).write_bytes(whole[:size])
            found = look(top)["checkpoints"]
            assert codes(found) == ["checkpoint-broken"]
            assert name in found.causes[0].text
            assert look(top, resume=False)["checkpoints"].status == "pass"
        (folder / name).write_bytes(whole)
    (folder / "training_args.bin").write_bytes(b"")  # Nothing reads it.
    os.mkfifo(folder / "pipe.pt")
    assert look(top)["checkpoints"].status == "pass"


def test_conflicts_are_seen_and_the_commands_mend_them(top: Path) -> None:
    save(top, 100, changed=5000)
    save(top, 900, changed=1000)
    (top / "checkpoint-50").write_text("")
    (top / "checkpoint-60").symlink_to("nowhere")
    (top / "checkpoint-70").symlink_to("checkpoint-100")
    (top / "checkpoint-80").mkdir()
    (top / "checkpoint-80" / ".hidden").write_text("")
    found = look(top, save_total_limit=1, resume=True)["checkpoints"]
    expected = ["checkpoint-conflict"] * 2 + ["checkpoint-hidden-files", "checkpoint-stale"]
    assert codes(found) == expected
    for cause in found.causes:
        for words in cause.remedy.commands:
            subprocess.run(words, check=True)
    assert look(top, save_total_limit=1, resume=True)["checkpoints"].status == "pass"


def test_a_run_that_resumes_wants_a_checkpoint(top: Path) -> None:
    assert codes(look(top, resume=True)["checkpoints"]) == ["checkpoint-broken"]
    assert (
        look(top)["checkpoints"].status == look(top, resume=False)["checkpoints"].status == "pass"
    )
    save(top, 7)
    assert look(top, resume=True)["checkpoints"].status == "pass"
    (top / "checkpoint-7" / "optimizer.pt").unlink()
    told = "usable, though optimizer.pt is missing: optimizer and scheduler begin anew"
    assert look(top, resume=True)["checkpoints"].observation.value == told


def test_what_deepspeed_saved_by_itself_is_looked_at(top: Path) -> None:
    (top / "latest").write_text("global_step5")
    found = look(top, resume=True)["checkpoints"]
    assert found.causes[0].text.startswith(f"{top}/latest, the newest, latest names global_step5")
    (top / "global_step5").mkdir()
    (top / "global_step5" / "mp_rank_00_model_states.pt").write_bytes(make_pt())
    assert look(top, resume=True)["checkpoints"].status == "pass"


def test_a_checkpoint_that_somebody_writes_is_unknown(top: Path) -> None:
    folder = save(top, 7)
    words = f"f=open('{folder}/optimizer.pt','wb'); print(1, flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", words], stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        found = look(top, resume=True)["checkpoints"]
        process.communicate(b"\n")
    assert (found.status, found.causes) == ("unknown", ())
    assert found.observation.reason == (
        f"{top}/checkpoint-7: is being written by pid {process.pid}"
    )
    assert codes(look(top, resume=True)["checkpoints"]) == ["checkpoint-broken"]


def test_room_is_needed_for_every_copy(top: Path) -> None:
    size = 2**60
    found = look(top, checkpoint_size=size, save_total_limit=1)["free space"]
    assert (found.status, found.requirement.minimum) == ("fail", 2 * size)
    assert codes(found) == ["folder-full"]


TEE = """
exec 3>&1
{ python3 -c "import time; print(1, file=open('/dev/fd/3', 'w'), flush=True); time.sleep(60)"; } |
    tee "$1/log"
"""


def test_whoever_logs_or_serves_the_directory_is_no_run(top: Path) -> None:
    serve = [sys.executable, "-m", "http.server", "-d", str(top), "-b", "127.0.0.1", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["setsid", "bash", "-c", TEE, "bash", str(top)], stdout=pipe
    ) as tee, subprocess.Popen(
        serve,
        cwd=top,
        stdout=pipe,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as server:
        for one in (tee, server):
            assert one.stdout
            one.stdout.readline()
        found = look(top)["other runs"]
        os.killpg(tee.pid, 9)
        server.kill()
    assert (found.status, found.causes) == ("pass", ())


@pytest.mark.slow
def test_another_run_is_seen_and_this_one_is_not(top: Path) -> None:
    words = f"import time; f=open('{top}/log','w'); print(1, flush=True); time.sleep(60)"
    outside = ["setsid", "--fork", sys.executable, "-c", words]
    with subprocess.Popen(outside, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        starter.stdout.readline()
        found = look(top)["other runs"]
        pid = int(str(found.observation.value).partition(" ")[2])
        os.kill(pid, 9)
    assert codes(found) == ["output-in-use"]
    assert found.causes[0].text.endswith(f"(pid {pid}) writes {top}/log")
    with open(top / "log", "w"):
        assert look(top)["other runs"].status == "pass"


def test_a_directory_that_the_run_makes_is_looked_at_where_it_will_be(top: Path) -> None:
    """As transformers does, with all the folders above it; there is nothing to go on from."""
    found = look(top / "none" / "run", checkpoint_size=1)
    assert {item: one.status for item, one in found.items()} == {
        "directory": "pass",
        "rename": "pass",
        "directory rename": "pass",
        "free space": "pass",
    }
    assert str(found["directory"].observation.value).endswith(f"can make it in {top}")
    assert not (top / "none").exists()
    found = look(top / "none", resume=True)
    assert codes(found["checkpoints"]) == ["checkpoint-broken"]
    assert look(top / "none", checkpoint_size=2**60)["free space"].status == "fail"


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
def test_a_directory_that_nobody_can_make_is_said_once(top: Path) -> None:
    found = look(top / "none", checkpoint_size=1, user="nobody")
    assert {item: one.status for item, one in found.items()} == {
        "directory": "fail",
        "free space": "unknown",
    }
    assert codes(found["directory"]) == ["folder-absent"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
def test_what_who_will_run_may_not_read_is_no_checkpoint(top: Path) -> None:
    """Root may read it, and leaves the look to whose the directory is."""
    folder = save(top, 7)
    for path in (top, folder, *folder.iterdir()):
        os.chown(path, 65534, 65534)
    os.chown(folder / "optimizer.pt", 0, 0)
    (folder / "optimizer.pt").chmod(0o600)
    found = look(top, user="nobody")["checkpoints"]
    assert "optimizer.pt is root's, with mode 0600: Permission denied" in found.causes[0].text
    assert (look(top)["checkpoints"].status, look(top, resume=False)["checkpoints"].status) == (
        "unknown",
        "pass",
    )


def test_a_path_of_a_container_is_not_looked_at(top: Path) -> None:
    assert look(top, place="container:docker/x")["directory"].status == "unknown"


def test_a_directory_that_cannot_be_read_is_unknown(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: str, _uid: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mlhost_limits.training.output_check.read_checkpoints", refuse)
    assert look(top)["checkpoints"].status == "unknown"


def test_checkpoints_are_read_in_order(top: Path) -> None:
    for number in (1000, 200, 30):
        save(top, number)
    assert [one.number for one in read_checkpoints(str(top), os.geteuid())] == [30, 200, 1000]


def test_of_several_open_files_one_of_a_checkpoint_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever order a process has them open."""
    files = [OpenFile(7, "/out/log", True), OpenFile(7, "/out/checkpoint-1/x", True)]
    files += [OpenFile(8, "/out/checkpoint-2/x", False), OpenFile(9, "/out/log", True)]
    for order in (files, files[::-1]):
        monkeypatch.setattr(output_check, "find_open_files", lambda *_asked, order=order: order)
        assert find_writers("/out") == {7: "/out/checkpoint-1/x", 9: "/out/log"}


def test_processes_are_read(tmp_path: Path) -> None:
    own = read_processes()[os.getpid()]
    assert own.parent == os.getppid()
    assert own.folder == os.getcwd()
    (tmp_path / "7").mkdir()
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_text("8 (a) b (c)) S 3 8 8")
    (tmp_path / "x").mkdir()
    assert list(read_processes(str(tmp_path))) == [8]
    assert read_processes(str(tmp_path))[8][:2] == (3, "a) b (c)")
