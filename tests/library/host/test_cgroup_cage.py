# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs as a user is in a group of its own, or does not run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from mlhost_limits.host import cgroup_cage
from mlhost_limits.host.cgroup_cage import Cage


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("memory pids\n")
    (tmp_path / "user.slice" / "user-7.slice").mkdir(parents=True)
    return tmp_path


def fail(number: int, *parents: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = os.mkdir

    def refuse(path: str, mode: int) -> None:
        if any(str(path).rpartition("/")[0].endswith(parent) for parent in parents):
            raise OSError(number, os.strerror(number))
        make(path, mode)

    monkeypatch.setattr(os, "mkdir", refuse)


def test_a_group_lies_in_the_user_s_slice(top: Path) -> None:
    (folder,) = Cage(7, top=str(top)).folders
    assert folder.startswith(f"{top}/user.slice/user-7.slice/")
    (other,) = Cage(8, top=str(top)).folders
    assert other.rpartition("/")[0] == f"{top}/user.slice"


def test_a_slice_that_goes_meanwhile_is_no_way_out(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(errno.ENOENT, "user-7.slice", monkeypatch=monkeypatch)
    (folder,) = Cage(7, top=str(top)).folders
    assert folder.rpartition("/")[0] == f"{top}/user.slice"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENOMEM, errno.EAGAIN])
def test_without_a_group_nothing_runs(
    top: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A user can use up all the groups that the kernel has."""
    fail(number, "user-7.slice", "user.slice", monkeypatch=monkeypatch)
    with pytest.raises(OSError, match=r"^could not be confined"):
        Cage(7, top=str(top))


def test_where_nobody_may_make_one_there_is_none(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(errno.EROFS, "user-7.slice", "user.slice", monkeypatch=monkeypatch)
    assert Cage(7, top=str(top)).folders == []
    assert Cage(7, top="/nowhere").folders == []


def test_where_there_are_no_slices_the_group_lies_at_the_top(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("memory pids\n")
    (folder,) = Cage(7, top=str(tmp_path)).folders
    assert folder.rpartition("/")[0] == str(tmp_path)


def test_who_is_not_in_the_group_goes_no_further(top: Path) -> None:
    cage, told = Cage(7, top=str(top)), top / "told"
    told.write_text("0::/user.slice/user-0.slice/session-1.scope\n")
    with pytest.raises(OSError, match=r"^could not be confined"):
        cage.enter(str(told))
    told.write_text(f"0::{cage.folders[0][len(str(top)) :]}\n")
    cage.enter(str(told))


def test_a_group_has_the_bounds_that_are_asked_for(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, str] = {}
    monkeypatch.setattr(
        cgroup_cage, "_write", lambda path, text: written.update({path.rpartition("/")[2]: text})
    )
    Cage(7, 2**33, 99, top=str(top))
    assert (written["memory.max"], written["pids.max"]) == (str(2**33), "99")
    assert (written["memory.limit_in_bytes"], written["memory.swap.max"]) == (str(2**33), "0")
