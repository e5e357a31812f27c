# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever exchanges the folder of a trial loses no file to root, and neither does anybody else."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mlhost_limits.host.marks import make_mark
from mlhost_limits.host.open_directory import open_directory
from mlhost_limits.host.scratch import OPEN_FOLDER
from mlhost_limits.host.trial_folder import (
    PREFIX,
    SwappedError,
    pick_trial_name,
    remove_dead_trials,
    trial_folder,
)
from mlhost_limits.training.folder_measure import look_at_directory

from tests.worlds import swapper
from tests.worlds.dead import make_dead_mark

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
NOBODY = 65534
ROUNDS = int(os.environ.get("MLHOST_ROUNDS", "5"))


@pytest.fixture
def top() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def make_victim(cache: Path, uid: int) -> Path:
    """Make what root, or somebody, has in the directory already: a folder with files."""
    victim = cache / "victim"
    (victim / "below").mkdir(parents=True)
    for name in ("one", "below/two"):
        (victim / name).write_text("kept")
    for path in (victim, victim / "below"):
        os.chown(path, uid, uid)
        path.chmod(0o700)
    return victim


@contextmanager
def attacked(cache: Path, tmp: Path) -> Iterator[Path]:
    """Have a user without rights exchange each folder of ours as soon as it is there."""
    words = [sys.executable, swapper.__file__, str(NOBODY), str(cache), PREFIX, "victim"]
    with open(tmp / "said", "wb") as said, subprocess.Popen(words, stderr=said) as attacker:
        try:
            while b"ready" not in (tmp / "said").read_bytes():
                assert attacker.poll() is None
            yield tmp / "said"
        finally:
            attacker.kill()


def count_kept(cache: Path) -> int:
    return sum(path.is_file() and path.read_text() == "kept" for path in cache.rglob("*"))


@pytest.mark.parametrize(
    ("owner", "mode", "of_victim"),
    [(NOBODY, 0o755, 0), (NOBODY, 0o755, 12), (0, 0o777, 0), (12, 0o777, 0), (12, 0o777, 12)],
)
@pytest.mark.slow
def test_an_exchanged_folder_costs_nobody_a_file(
    top: Path, owner: int, mode: int, of_victim: int
) -> None:
    """The exchange is won often enough, by a user who may write to the directory."""
    cache = top / "cache"
    cache.mkdir()
    os.chown(cache, owner, owner)
    cache.chmod(mode)
    make_victim(cache, of_victim)
    with attacked(cache, top) as said:
        for _round in range(ROUNDS):
            look_at_directory(str(cache), None)
    assert "x" in said.read_text()
    assert count_kept(cache) == 2


def test_the_very_folder_is_emptied_and_its_name_is_left_if_it_leads_elsewhere(top: Path) -> None:
    name, victim = pick_trial_name(), make_victim(top, 0)
    parent = open_directory(str(top))
    with trial_folder(parent, name) as folder:
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
        (top / name).rename(top / "aside")
        victim.rename(top / name)
    assert count_kept(top) == 2
    assert sorted(path.name for path in top.iterdir()) == sorted([name, "aside"])
    assert not list((top / "aside").iterdir())
    os.close(parent)


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_may_write_to_is_not_used(
    top: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    plain = os.mkdir

    def open_up(name: str, mode_: int = 0o777, *, dir_fd: int | None = None) -> None:
        plain(name, dir_fd=dir_fd)
        os.chmod(name, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", open_up)
    parent = open_directory(str(top))
    with pytest.raises(SwappedError, match="others may write to"), trial_folder(parent, "x"):
        pass
    assert not list(top.iterdir())
    os.close(parent)


def test_what_killed_trials_left_is_removed_by_the_next(top: Path) -> None:
    dead, living = PREFIX + make_dead_mark(), PREFIX + make_mark()
    for name in (dead, living):
        (top / name / name).mkdir(parents=True, mode=0o700)
        (top / name).chmod(0o700)
        (top / name / name / "file").touch()
    stray, link = PREFIX + "stray", PREFIX + make_dead_mark()
    (top / stray).mkdir()
    (top / link).symlink_to(top / stray)
    full = PREFIX + make_dead_mark()
    (top / full).mkdir()
    (top / full / "of somebody").touch()
    parent = os.open(top, OPEN_FOLDER)
    remove_dead_trials(parent)
    os.close(parent)
    assert sorted(os.listdir(top)) == sorted([living, stray, link, full])
    assert os.listdir(top / full) == ["of somebody"]


@pytest.mark.parametrize("of_victim", [0, NOBODY, 12])
@pytest.mark.parametrize("user", [None, "root", "nobody"])
@pytest.mark.slow
def test_an_exchange_at_the_worst_moment_costs_nobody_a_file(
    top: Path, monkeypatch: pytest.MonkeyPatch, user: str | None, of_victim: int
) -> None:
    """Whoever looks, a folder of anybody's stands in the place of the one that was just made."""
    cache = top / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    make_victim(cache, of_victim)
    plain = os.mkdir

    def swap(name: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        plain(name, mode, dir_fd=dir_fd)
        if os.path.exists(f"/proc/self/fd/{dir_fd}/victim"):
            os.rename(name, f"{name}-aside", src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
            with contextlib.suppress(OSError):
                os.rename("victim", name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", swap)
    look_at_directory(str(cache), user)
    assert count_kept(cache) == 2
