# SPDX-License-Identifier: BSD-2-Clause
"""Tell a daemon of the host's from a process that only bears its name.

A name proves nothing: whoever runs a program chooses what it is called. A daemon is root's by all
of its user ids, runs a program of root's, and lives in its unit's control group or, where systemd
does not run, in the file system that process 1 lives in.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

from .door import read_kernel_file, read_kernel_text


def read_comm(pid: int | str, proc: str = "/proc") -> str:
    """Return what /proc/PID/comm says, and nothing of a process that has ended."""
    try:
        return read_kernel_text(f"{proc}/{pid}/comm").strip()
    except OSError:
        return ""


_UIDS = re.compile(rb"^Uid:\t0\t0\t0\t0$", re.MULTILINE)
_DELETED = " (deleted)"
_LONGEST_COMM = 15
_OTHERS_SLICES = ("user.slice", "machine.slice")


def is_daemon(pid: int, program: str, units: Sequence[str] = (), proc: str = "/proc") -> bool:
    """Tell whether a process is a daemon of root's.

    :param program: The name of its program; what follows after ``-`` may differ.
    :param units: The units that it may belong to; by default any that is not a user's.
    """
    folder = f"{proc}/{pid}"
    if not is_roots(pid, proc):
        return False
    try:
        cgroup = os.fsdecode(read_kernel_file(f"{folder}/cgroup"))
        runs_it = _runs_program(folder, program)
    except OSError:
        return False
    return runs_it and (is_in_unit(cgroup, units) or _shares_files(folder, proc))


def _runs_program(folder: str, program: str) -> bool:
    """Tell whether a process of root's runs a program of root's; only root can see which."""
    try:
        name = os.path.basename(os.readlink(f"{folder}/exe").replace(_DELETED, ""))
        found = os.stat(f"{folder}/exe")
    except PermissionError:
        if os.geteuid() == 0:
            return False
        name = os.fsdecode(read_kernel_file(f"{folder}/comm")).rstrip("\n")
        return name == program[:_LONGEST_COMM]
    if name != program and not name.startswith(f"{program}-"):
        return False
    return found.st_uid == 0 and not found.st_mode & stat.S_IWOTH and not _is_of_group(found)


def is_roots(pid: int, proc: str = "/proc") -> bool:
    """Tell whether a process is root's by all of its user ids."""
    try:
        return bool(_UIDS.search(read_kernel_file(f"{proc}/{pid}/status")))
    except OSError:
        return False


def _is_of_group(found: os.stat_result) -> bool:
    return bool(found.st_mode & stat.S_IWGRP) and found.st_gid != 0


def is_in_unit(cgroup: str, units: Sequence[str] = ()) -> bool:
    """Tell whether a process lives in a unit of the system's, whose slices only root makes.

    :param cgroup: /proc/PID/cgroup.
    :param units: Their names; by default any service or scope.
    """
    return any(_is_path_of(line.split(":", 2)[-1], units) for line in cgroup.splitlines())


def _is_path_of(path: str, units: Sequence[str]) -> bool:
    for part in path.split("/")[1:]:
        if part in _OTHERS_SLICES:
            return False
        if not part.endswith(".slice"):
            return part in units if units else part.endswith((".service", ".scope"))
    return False


def _shares_files(folder: str, proc: str) -> bool:
    """Tell whether a process sees the files that this process or the first one sees.

    Where systemd runs, a daemon that nobody put into a unit may still have been started by hand.
    """
    own = _read_space(folder)
    return bool(own) and own in (_read_space(f"{proc}/self"), _read_space(f"{proc}/1"))


def _read_space(folder: str) -> str:
    try:
        return os.readlink(f"{folder}/ns/mnt")
    except OSError:
        return ""
