# SPDX-License-Identifier: BSD-2-Clause
"""Find the files below a directory that processes have open, and how."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property

from ..core.values import NamedTuple
from ..host.door import list_kernel_folder, list_pids
from ..host.files import read_text

_MOUNT = re.compile(r"^mnt_id:\s*([0-9]+)", re.MULTILINE)
_FLAGS = re.compile(r"^flags:\s*([0-7]+)", re.MULTILINE)


class OpenFile(NamedTuple):
    """A file that a process has open; ``writes`` says that it may write to it."""

    pid: int
    path: str
    writes: bool


def find_open_files(folder: str, proc: str = "/proc") -> Iterator[OpenFile]:
    """Yield what processes have open below a directory, this one left out.

    What belongs to another user is seen by root alone. Who has mounts of their own can have a file
    of any path: that counts if it is the very file that is here.
    """
    start = folder.rstrip("/") + "/"
    own, here = find_space(f"{proc}/self"), _Mounts(f"{proc}/self")
    for name in list_pids(proc):
        if name == os.getpid():
            continue
        try:
            handles = list_kernel_folder(f"{proc}/{name}/fd")
        except OSError:
            continue  # It ended, or is somebody else's.
        there = None if find_space(f"{proc}/{name}") == own else _Mounts(f"{proc}/{name}")
        for handle in handles:
            try:
                path = os.readlink(f"{proc}/{name}/fd/{handle}")
            except OSError:
                continue
            if path.startswith(start) and (
                there is None or _is_here(f"{proc}/{name}", handle, path, there, here)
            ):
                writes = _may_write(f"{proc}/{name}/fdinfo/{handle}")
                yield OpenFile(int(name), path, writes)


def find_writers_below(folder: str) -> dict[str, int]:
    """Return the files below a folder that some process writes, by their paths there: its pid.

    :param folder: Its real path.
    """
    start = folder.rstrip("/") + "/"
    found = (one for one in find_open_files(folder) if one.writes)
    return {one.path[len(start) :]: one.pid for one in found}


class _Mounts:
    """The mounts of a process, read when somebody asks."""

    def __init__(self, process: str) -> None:
        self._process = process

    @cached_property
    def _rows(self) -> list[list[str]]:
        return read_mounts(self._process)

    def find_device(self, number: str) -> str:
        """Return the device of a mount by its number."""
        return next((row[2] for row in self._rows if row[0] == number), "")

    def find_device_of(self, path: str) -> str:
        """Return the device of what is mounted at a path, or above it."""
        above = [row for row in self._rows if f"{path}/".startswith(row[4].rstrip("/") + "/")]
        return max(above, key=lambda row: len(row[4]))[2] if above else ""


def read_mounts(process: str) -> list[list[str]]:
    """Return the rows of a process's mountinfo; none where it is gone."""
    try:
        text = read_text(f"{process}/mountinfo") or ""
    except OSError:
        text = ""
    return [row for row in (line.split(" ") for line in text.splitlines()) if len(row) > 4]


def find_space(process: str) -> int:
    """Return which mounts a process sees; 0 where it is gone or somebody else's."""
    try:
        return os.stat(f"{process}/ns/mnt").st_ino
    except OSError:
        return 0


def _is_here(process: str, handle: str, path: str, there: _Mounts, here: _Mounts) -> bool:
    """Tell whether what a process with mounts of its own has open is the file of that path here.

    A file system of a user's may never answer, so that the devices are compared first: that asks
    the kernel alone.
    """
    try:
        number = _MOUNT.search(read_text(f"{process}/fdinfo/{handle}") or "")
        device = there.find_device(number[1]) if number else ""
        if not device or device != here.find_device_of(path):
            return False
        return os.path.samestat(os.stat(f"{process}/fd/{handle}"), os.lstat(path))
    except OSError:
        return False


def _may_write(path: str) -> bool:
    """Tell from proc_pid_fdinfo(5) whether a file was opened for writing."""
    try:
        match = _FLAGS.search(read_text(path) or "")
    except OSError:
        return False
    return match is not None and bool(int(match[1], 8) & os.O_ACCMODE)
