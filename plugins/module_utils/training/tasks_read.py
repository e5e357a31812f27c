# SPDX-License-Identifier: BSD-2-Clause
"""Read how many tasks are left: of the cgroups that a process is in, of the host, of a user."""

from __future__ import annotations

import os
import re

from ..host.door import list_pids, read_kernel_text
from ..kernel.read import read_sysctl
from ..kernel.use_read import read_kernel_use
from .cgroup_read import read_task_levels
from .tasks import TaskRoom

_OF_ALL = ("kernel.threads-max", "kernel.pid_max")


def find_task_rooms(cgroup: str, mounts: str, lookers: int = 0) -> list[TaskRoom]:
    """Return what is left, of each cgroup above a process and of the host.

    :param cgroup: /proc/PID/cgroup.
    :param mounts: /proc/self/mountinfo.
    :param lookers: How many of those in the cgroup only look, and are gone when the run starts.
    :raises OSError: If that cannot be told.
    """
    levels = read_task_levels(cgroup, mounts)
    if levels is None:
        raise OSError("the limits of its cgroup cannot be read from here")
    rooms = [
        TaskRoom(max(most - max(used - lookers, 0), 0), most, f"{path}/pids.max")
        for path, most, used in levels
    ]
    used = read_kernel_use().tasks
    for key in _OF_ALL:
        value = read_sysctl(key)
        if value:
            rooms.append(TaskRoom(max(int(value) - used, 0), int(value), key))
    if not rooms:
        raise OSError("what bounds the tasks of this host cannot be read")
    return rooms


def find_lookers(proc: str = "/proc") -> set[int]:
    """Return this process, and the one that it is a fork of."""
    own, parent = os.getpid(), os.getppid()
    try:
        words = [read_kernel_text(f"{proc}/{pid}/cmdline") for pid in (own, parent)]
    except OSError:
        return {own}
    return {own, parent} if words[0] == words[1] else {own}


def count_tasks_of(uid: int, proc: str = "/proc") -> int:
    """Return how many tasks a user has on this host, which nproc counts all together.

    Whoever looks is gone before the run starts, or is the run and counted with it.
    """
    total = 0
    for pid in set(list_pids(proc)) - find_lookers(proc):
        try:
            text = read_kernel_text(f"{proc}/{pid}/status")
        except OSError:
            continue  # It has ended.
        owner = re.search(r"^Uid:\s+([0-9]+)", text, re.MULTILINE)
        threads = re.search(r"^Threads:\s+([0-9]+)", text, re.MULTILINE)
        if owner and threads and int(owner[1]) == uid:
            total += int(threads[1])
    return total
