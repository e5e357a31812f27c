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
from mlhost_limits.training.output_check import check_output, read_checkpoints, read_processes
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
    for name in ("optimizer.pt", "scheduler.pt", "training_args.bin"):
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
    for name in ("model.safetensors", "optimizer.pt", "training_args.bin"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])
        found = look(top)["checkpoints"]
        assert codes(found) == ["checkpoint-broken"]
        assert name in found.causes[0].text
        (folder / name).write_bytes(whole)
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


def test_room_is_needed_for_every_copy(top: Path) -> None:
    size = 2**60
    found = look(top, checkpoint_size=size, save_total_limit=1)["free space"]
    assert (found.status, found.requirement.minimum) == ("fail", 2 * size)
    assert codes(found) == ["folder-full"]


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


def test_a_directory_that_is_not_there_is_said_once(top: Path) -> None:
    found = look(top / "none", checkpoint_size=1)
    assert {item: one.status for item, one in found.items()} == {
        "directory": "fail",
        "free space": "unknown",
    }
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
