# SPDX-License-Identifier: BSD-2-Clause
"""Read what every process holds of what it may: limits, descriptors, locked memory; each file once.

A host has thousands of processes and this runs every few minutes, so it is written for speed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ..core.values import NamedTuple, Rlimit, parse_proc_limits
from ..host.door import list_kernel_folder, list_pids, read_kernel_text
from ..host.look import Process
from .load import Load
from .metrics import Files

_KIB = 1024


class Usage(NamedTuple):
    """A process, the limits that it runs under, and what it holds of them.

    ``memory`` is what it has locked and what devices hold of it, in bytes; ``None`` for a thread
    of the kernel and for what has ended and waits to be seen.
    """

    process: Process
    limits: Mapping[str, Rlimit]
    open_files: int | None
    memory: tuple[int, int] | None


def find_usages(proc: str = "/proc") -> Iterator[Usage]:
    """Yield every process that still exists when it is read, threads of the kernel included."""
    tells_size = tells_fd_size(proc)
    for pid in list_pids(proc):
        try:
            yield _read_usage(f"{proc}/{pid}", pid, tells_size)
        except (OSError, ValueError):
            continue  # It ended between the listing and the look.


def tells_fd_size(proc: str) -> bool:
    """Tell whether the size of /proc/PID/fd is the number of descriptors (Linux 6.2 and later).

    Before, it is 0; and this process has at least one open.
    """
    handle = os.dup(0)
    try:
        return os.stat(f"{proc}/self/fd").st_size > 0
    except OSError:
        return False
    finally:
        os.close(handle)


def _read_usage(folder: str, pid: int, tells_size: bool) -> Usage:
    stat = read_kernel_text(f"{folder}/stat")
    opened, closed = stat.index("("), stat.rindex(")")
    start = int(stat[closed + 2 :].split(" ", 20)[19])
    status = read_kernel_text(f"{folder}/status")
    uid = int(_find_cells(status, "\nUid:")[1])
    cgroup = read_kernel_text(f"{folder}/cgroup").strip()
    process = Process(pid, stat[opened + 1 : closed], uid, cgroup, start)
    limits = parse_proc_limits(read_kernel_text(f"{folder}/limits"))
    if "\nVmLck:" not in status:
        return Usage(process, limits, None, None)
    cells = _find_cells(status, "\nVmLck:")  # VmPin is the next row (task_mem() in task_mmu.c).
    memory = (int(cells[0]) * _KIB, int(cells[3]) * _KIB)
    return Usage(process, limits, count_open_files(folder, tells_size), memory)


def _find_cells(status: str, label: str) -> list[str]:
    """Return the values of a row of /proc/PID/status, and what follows."""
    start = status.index(label) + len(label)
    return status[start : start + 64].split(None, 4)


def count_open_files(folder: str, tells_size: bool) -> int | None:
    """Return how many descriptors a process has; ``None`` where that may not be seen.

    :param folder: Its folder of /proc.
    :raises OSError: If it has ended.
    """
    try:
        if tells_size:
            return os.stat(f"{folder}/fd").st_size
        return len(list_kernel_folder(f"{folder}/fd"))
    except PermissionError:
        return None


def find_loads(usages: Iterator[Usage] | tuple[Usage, ...]) -> Iterator[Load]:
    """Yield what each process of a user holds of what it may."""
    for process, limits, open_files, memory in usages:
        if memory is not None:
            nofile, memlock = limits["nofile"].soft, limits["memlock"].soft
            pid, name, uid, cgroup, _start = process
            yield Load(pid, name, uid, cgroup, open_files, nofile, *memory, memlock)


def read_files(proc: str = "/proc") -> Files | None:
    """Return fs.file-nr, or ``None`` where it cannot be read."""
    try:
        cells = read_kernel_text(f"{proc}/sys/fs/file-nr").split()
        return Files(int(cells[0]), int(cells[2]))
    except (OSError, ValueError, IndexError):
        return None
