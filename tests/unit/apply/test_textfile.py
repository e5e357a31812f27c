# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever reads a file finds the old one or the new one, also where it could not be written."""

from __future__ import annotations

import os
import resource
import signal
import stat
from pathlib import Path

import pytest
from mlhost_limits.apply.textfile import replace_text


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "x.prom"
    path.write_text("old")
    path.chmod(0o600)
    (tmp_path / ".mlhost-x.prom").write_text("of a run that was killed")
    replace_text(str(path), "new ü\n")
    assert path.read_text(encoding="utf-8") == "new ü\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["x.prom"]


def test_a_link_that_somebody_put_there_is_not_followed(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "x.prom"
    victim.write_text("kept")
    (tmp_path / ".mlhost-x.prom").symlink_to(victim)
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
    with pytest.raises(OSError, match="No such file or directory"):
        replace_text(str(tmp_path / "none" / "x.prom"), "new")
