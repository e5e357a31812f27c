# SPDX-License-Identifier: BSD-2-Clause
"""Find the files below a directory that processes have open, and how."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .door import list_kernel_folder, list_pids
from .files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS = re.compile(r"^flags:\s*([0-7]+)", re.MULTILINE)


class OpenFile(NamedTuple):
    """A file that a process has open; ``writes`` says that it may write to it."""

    pid: int
    path: str
    writes: bool


def find_open_files(folder: str, proc: str = "/proc") -> Iterator[OpenFile]:
    """Yield what processes have open below a directory, this one left out.

    What belongs to another user is seen by root alone.
    """
    start = folder.rstrip("/") + "/"
    for name in list_pids(proc):
        if name == os.getpid():
            continue
        try:
            handles = list_kernel_folder(f"{proc}/{name}/fd")
        except OSError:
            continue  # It ended, or is somebody else's.
        for handle in handles:
            try:
                path = os.readlink(f"{proc}/{name}/fd/{handle}")
            except OSError:
                continue
            if path.startswith(start):
                writes = _may_write(f"{proc}/{name}/fdinfo/{handle}")
                yield OpenFile(int(name), path, writes)


def _may_write(path: str) -> bool:
    """Tell from proc_pid_fdinfo(5) whether a file was opened for writing."""
    try:
        match = _FLAGS.search(read_text(path) or "")
    except OSError:
        return False
    return match is not None and bool(int(match[1], 8) & os.O_ACCMODE)
