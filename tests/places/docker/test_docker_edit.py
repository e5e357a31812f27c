# SPDX-License-Identifier: GPL-3.0-or-later
"""The edit of daemon.json changes the key that was seen, whole or not at all, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from mlhost_limits.core.values import Rlimit
from mlhost_limits.docker.remedies import drop_key, state_in_file
from mlhost_limits.docker.site import Tools

from tests.worlds.docker_scene import PATH, make_world
from tests.worlds.pasted import move_top

TEXT = json.dumps({"default-ulimits": {"nofile": {"Hard": 9, "Soft": 9}}, "labels": ["a"]})
HOME = "/home/alice/.config/docker/daemon.json"


def write_words(path: str, folder: Path, text: str = TEXT) -> list[str]:
    """Return the edit of a nofile that is too low, for a file of the same name in a directory."""
    change = state_in_file("nofile", Rlimit(65536, 65536), make_world(text, path=path), Tools())
    words = change.remedy.commands[0]
    here = str(folder.resolve() / "daemon.json")
    return [move_top(word.replace(path, here), folder) for word in words]


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, timeout=20)


def check_refusal(done: subprocess.CompletedProcess[str], path: Path) -> None:
    assert done.returncode != 0
    assert done.stderr == (
        f"{path} has changed since the check, or cannot be: nothing was done; run the check again\n"
    )


def test_the_key_is_changed_and_the_file_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "daemon.json"
    file.write_text(TEXT)
    file.chmod(0o640)
    words = write_words(PATH, tmp_path)
    for _time in range(2):  # A second time it is what it shall be already.
        done = run(words, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        entry = {"Name": "nofile", "Hard": 65536, "Soft": 65536}
        assert json.loads(file.read_text()) == {
            "default-ulimits": {"nofile": entry},
            "labels": ["a"],
        }
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["daemon.json"]


@pytest.mark.parametrize("path", [PATH, HOME])
@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("9", "10"),
        '{"default-ulimits": {"nofile": 5}}',
        '{"default-ulimits": []}',
        "[]",
        "{",
        "",
        "\0",
        None,
    ],
)
@pytest.mark.slow
def test_a_file_that_is_another_now_is_left_alone(
    path: str, text: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "daemon.json"
    if text is not None:
        file.write_text(text)
    check_refusal(run(write_words(path, tmp_path), tmp_path), file.resolve())
    assert (file.read_text() if file.exists() else None) == text
    assert len(os.listdir(tmp_path)) == (text is not None)


@pytest.mark.parametrize("path", [PATH, HOME])
@pytest.mark.parametrize("kind", ["link", "FIFO", "directory"])
@pytest.mark.slow
def test_what_is_no_plain_file_is_left_alone(path: str, kind: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "docker", tmp_path / "outside.json"
    folder.mkdir()
    outside.write_text(TEXT)
    file = folder / "daemon.json"
    if kind == "link":
        file.symlink_to(outside)
    elif kind == "FIFO":
        os.mkfifo(file)
    else:
        file.mkdir()
    check_refusal(run(write_words(path, folder), folder), file)
    assert outside.read_text() == TEXT


def test_no_module_is_taken_from_where_it_is_pasted(tmp_path: Path) -> None:
    """A user's json.py in /tmp is none of root's."""
    folder, elsewhere = tmp_path / "docker", tmp_path / "tmp"
    for one in (folder, elsewhere):
        one.mkdir()
    (folder / "daemon.json").write_text(TEXT)
    (elsewhere / "json.py").write_text("open('owned', 'w')")
    assert run(write_words(PATH, folder), elsewhere).returncode == 0
    assert os.listdir(elsewhere) == ["json.py"]


def test_a_key_that_says_something_else_by_now_is_not_taken_out(tmp_path: Path) -> None:
    file = tmp_path / "daemon.json"
    world = make_world('{"default-ulimits": 8}')
    words = drop_key("default-ulimits", world, Tools()).remedy.commands[0]
    here = [move_top(one.replace(PATH, str(file.resolve())), tmp_path) for one in words]
    file.write_text(TEXT)
    check_refusal(run(here, tmp_path), file.resolve())
    file.write_text('{"default-ulimits": 8, "a": 1}')
    assert run(here, tmp_path).returncode == 0
    assert json.loads(file.read_text()) == {"a": 1}


def test_of_root_s_file_a_link_is_followed_and_of_a_user_s_it_is_not(tmp_path: Path) -> None:
    file, link = tmp_path / "kept.json", tmp_path / "daemon.json"
    file.write_text(TEXT)
    link.symlink_to(file)
    check_refusal(run(write_words(HOME, tmp_path), tmp_path), link)
    assert file.read_text() == TEXT
    assert run(write_words(PATH, tmp_path), tmp_path).returncode == 0
    assert link.is_symlink()
    assert json.loads(file.read_text())["default-ulimits"]["nofile"]["Hard"] == 65536
