# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes are told apart by what /proc says, whatever their names hold."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from mlhost_limits.core.values import RLIMITS
from mlhost_limits.host.look import (
    Process,
    find_processes,
    read_limits,
    read_process,
    read_unit_pids,
    started_before,
)


def add(proc: Path, pid: int, comm: str = "python3", start: int = 500) -> None:
    folder = proc / str(pid)
    folder.mkdir()
    numbers = " ".join(["0"] * 18)
    (folder / "stat").write_bytes(
        f"{pid} ({comm}) S {numbers} {start} 0 0\n".encode("utf-8", "surrogateescape")
    )
    (folder / "cgroup").write_text("0::/system.slice/x.service\n")


@pytest.mark.parametrize("comm", ["python3", "a) S 1 2 (b", "((", "tab\tin", "two words"])
def test_a_name_may_hold_anything(tmp_path: Path, comm: str) -> None:
    add(tmp_path, 7, comm)
    expected = Process(7, comm, os.getuid(), "0::/system.slice/x.service", 500)
    assert read_process(7, str(tmp_path)) == expected


def test_a_name_that_is_no_utf_8_is_read(tmp_path: Path) -> None:
    add(tmp_path, 7, "a\udcff")
    assert read_process(7, str(tmp_path)).comm == "a\ufffd"


def test_processes_that_end_meanwhile_are_left_out(tmp_path: Path) -> None:
    add(tmp_path, 7)
    add(tmp_path, 8)
    (tmp_path / "8/cgroup").unlink()
    (tmp_path / "9").mkdir()
    (tmp_path / "self").symlink_to("7")
    assert [process.pid for process in find_processes(str(tmp_path))] == [7]


def test_this_process_is_found() -> None:
    own = read_process(os.getpid())
    assert own in list(find_processes())
    assert own.uid == os.geteuid()
    assert tuple(read_limits("self")) == tuple(read_limits(os.getpid())) == RLIMITS


def test_a_process_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_limits(7, str(tmp_path))


@pytest.mark.parametrize("hierarchy", ["", "systemd", "unified"])
def test_the_processes_of_a_unit(tmp_path: Path, hierarchy: str) -> None:
    folder = tmp_path / hierarchy / "system.slice" / "x.service"
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text("30\n4\n")
    assert read_unit_pids("x.service", root=str(tmp_path)) == [4, 30]
    assert read_unit_pids("y.service", root=str(tmp_path)) == []
    assert read_unit_pids("x.service", "user.slice", str(tmp_path)) == []


@pytest.mark.parametrize(("age", "before"), [(-60, False), (-40, True), (0, True)])
def test_what_started_before_a_file_changed(tmp_path: Path, age: int, before: bool) -> None:
    """The process started 50 seconds ago: 950 seconds after a boot 1000 seconds ago."""
    (tmp_path / "uptime").write_text("1000.00 3000.00\n")
    changed = tmp_path / "file"
    changed.write_text("")
    os.utime(changed, (0, time.time() + age))
    process = Process(7, "x", 0, "", 950 * os.sysconf("SC_CLK_TCK"))
    assert started_before(process, str(changed), str(tmp_path)) is before
    assert started_before(process, str(tmp_path / "no"), str(tmp_path)) is False
