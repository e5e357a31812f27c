# SPDX-License-Identifier: BSD-2-Clause
"""Look into the /dev/shm that a process sees: what is free, and what nobody uses any more."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator

from ..core.values import UNLIMITED, NamedTuple
from ..host.children import run_in_children
from ..host.door import list_kernel_folder, list_pids, read_kernel_text
from ..shared_memory.model import SHM

_OURS = re.compile(r"(torch_[0-9]+_|nccl-)[ -~]*")
_NAMED = re.compile(r"/(torch_[0-9]|nccl-)")
_MOST = 10000
_TIME_LIMIT = 10.0


class Leftover(NamedTuple):
    """A file of a loader, or of NCCL, that no process has mapped or open."""

    path: str
    size: int


def find_folder(pid: str = "self", proc: str = "/proc") -> str:
    """Return where /dev/shm of a process is for us."""
    return SHM if pid == "self" else f"{proc}/{pid}/root{SHM}"


def read_free(folder: str = SHM) -> int:
    """Return the free bytes of a /dev/shm; one without a limit has no end.

    :raises OSError: If there is none, or it may not be looked at.
    """
    seen = os.statvfs(folder)
    return seen.f_bavail * seen.f_frsize if seen.f_blocks else UNLIMITED


def read_size(folder: str = SHM) -> int:
    """Return the bytes of a /dev/shm, free or not."""
    seen = os.statvfs(folder)
    return seen.f_blocks * seen.f_frsize or UNLIMITED


def find_leftovers(folder: str = SHM, proc: str = "/proc") -> list[Leftover]:
    """Return the files that runs left behind, the largest first.

    The process in a file's name may have ended while another uses it, so only a file counts that
    nobody has mapped or open. Of other users' files that only root can tell.
    """
    found: dict[int, Leftover] = {}
    try:
        for name in filter(_OURS.fullmatch, list_kernel_folder(folder)):
            seen = os.lstat(f"{folder}/{name}")
            mine = stat.S_ISREG(seen.st_mode) and os.geteuid() in (0, seen.st_uid)
            if mine and len(found) < _MOST:
                found[seen.st_ino] = Leftover(f"{folder}/{name}", seen.st_size)
    except OSError:
        return []
    if not found:
        return []
    # A process can keep whoever reads what it has mapped waiting, so that a child does it.
    report = run_in_children([lambda: sorted(set(_find_used(proc)))], _TIME_LIMIT)[0]
    if report.problem:
        return []
    used = set(report.value)
    left = [one for inode, one in found.items() if inode not in used]
    return sorted(left, key=lambda one: (-one.size, one.path))


def _find_used(proc: str) -> Iterator[int]:
    """Yield the inodes of such files that some process has mapped or open."""
    for pid in list_pids(proc):
        try:
            rows = read_kernel_text(f"{proc}/{pid}/maps").splitlines()
            yield from (int(row.split(None, 5)[4]) for row in rows if _NAMED.search(row))
            for name in list_kernel_folder(f"{proc}/{pid}/fd"):
                handle = f"{proc}/{pid}/fd/{name}"
                if _NAMED.search(os.readlink(handle)):
                    yield os.stat(handle).st_ino
        except OSError:
            continue  # It ended, or is another user's, whose files do not count either.


def sum_sizes(leftovers: Iterable[Leftover]) -> int:
    """Return the bytes that they take."""
    return sum(one.size for one in leftovers)
