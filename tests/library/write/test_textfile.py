# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever reads a file finds the old one or the new one, also where it could not be written."""

from __future__ import annotations

import os
import resource
import signal
import stat
from pathlib import Path

import pytest
from mlhost_limits.write.temporary import pick_bare_name, read_written, remove_written, replace_text

from tests.worlds.dead import run_in_dead


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "x.prom"
    path.write_text("old")
    path.chmod(0o600)
    (tmp_path / name_of_the_dead()).write_text("of a run that was killed")
    (tmp_path / "x.prom.bak").write_text("of somebody else")
    replace_text(str(path), "new ü\n")
    assert path.read_text(encoding="utf-8") == "new ü\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert sorted(os.listdir(tmp_path)) == ["x.prom", "x.prom.bak"]


def name_of_the_dead() -> str:
    return run_in_dead(pick_bare_name)


def test_a_link_that_somebody_put_there_is_not_followed(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "x.prom"
    victim.write_text("kept")
    (tmp_path / name_of_the_dead()).symlink_to(victim)
    path.symlink_to(victim)
    replace_text(str(path), "new")
    assert victim.read_text() == "kept"
    assert not path.is_symlink()


def test_a_disk_that_is_full_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.prom"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match=r"x\.prom: could not be written \(File too large\)"):
            replace_text(str(path), "n" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.prom"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none does not exist"):
        replace_text(str(tmp_path / "none" / "x.prom"), "new")


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="owners are root's to change")


@needs_root
def test_the_owner_of_the_folder_leads_nobody_elsewhere(tmp_path: Path) -> None:
    """The folder that node_exporter reads is its own user's, and so is the one above it."""
    victim, home = tmp_path / "victim", tmp_path / "home"
    for folder in (victim, home):
        folder.mkdir()
    os.chown(home, 12, 12)
    (home / "metrics").symlink_to(victim)
    os.lchown(home / "metrics", 12, 12)
    path = f"{home}/metrics/x.prom"
    with pytest.raises(OSError, match=r"metrics is a link of .*, which nobody else follows"):
        replace_text(path, "new")
    (victim / "x.prom").write_text("secret")
    assert read_written(path) is None
    remove_written(path)
    assert os.listdir(victim) == ["x.prom"]


@needs_root
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "theirs", "none"])
def test_what_is_no_file_of_ours_is_not_read(tmp_path: Path, kind: str) -> None:
    secret, path = tmp_path / "secret", tmp_path / "x.prom"
    secret.write_text("secret")
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "theirs":
        path.write_text("x")
        os.chown(path, 12, 12)
    assert read_written(str(path)) is None
    if kind != "folder":
        remove_written(str(path))
        assert sorted(os.listdir(tmp_path)) == ["secret"]


def test_what_was_written_is_read_and_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "x.prom")
    replace_text(path, "new")
    assert read_written(path) == b"new"
    remove_written(path)
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_or_a_folder_is_no_place_for_a_file(tmp_path: Path) -> None:
    """As in ``--metrics /dev/null``: a host would be without it."""
    os.mknod(tmp_path / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for name in ("null", "fifo", "folder"):
        before = os.lstat(tmp_path / name)
        with pytest.raises(OSError, match="it exists and is not a regular file"):
            replace_text(str(tmp_path / name), "x")
        assert os.lstat(tmp_path / name).st_ino == before.st_ino
    assert sorted(one.name for one in tmp_path.iterdir()) == ["fifo", "folder", "null"]
