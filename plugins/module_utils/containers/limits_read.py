# SPDX-License-Identifier: BSD-2-Clause
"""Read the limits that a container really has, from the host, and tell which have too little."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ..core.values import UNLIMITED
from ..host.door import read_kernel_text
from ..host.look import read_limits
from ..systemd.tasks import Level
from ..systemd.tasks_read import read_levels
from .findings import ContainerLimits, judge_container

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import ContainerPolicy
    from .read import RunningContainer


def read_container_limits(pid: int, proc: str = "/proc") -> ContainerLimits:
    """Return the limits and the /dev/shm of the container whose first process is *pid*.

    :raises OSError: If the process is gone, or the caller is not root.
    """
    limits, levels = read_limits(pid, proc), _read_levels(pid, proc)
    device = f"{proc}/{pid}/root/dev"
    try:
        mounted = os.stat(f"{device}/shm").st_dev != os.stat(device).st_dev
    except FileNotFoundError:
        return ContainerLimits(limits, None, levels)
    if not mounted:
        return ContainerLimits(limits, None, levels)
    size = os.statvfs(f"{device}/shm")
    return ContainerLimits(limits, size.f_blocks * size.f_frsize or UNLIMITED, levels)


def _read_levels(pid: int, proc: str) -> tuple[Level, ...]:
    try:
        return tuple(read_levels(read_kernel_text(f"{proc}/{pid}/cgroup")))
    except OSError:
        return ()  # It ended since its limits were read.


def tell_old(containers: Iterable[tuple[str, int]], asked: ContainerPolicy) -> Iterator[str]:
    """Yield a line for each bound that a container falls short of, which goes on with what it has.

    :param containers: The name of each, and the pid of its first process.
    """
    from ..core.report import format_failures  # Long, and only ``provision`` tells of them.

    for name, pid in containers:
        try:
            seen = read_container_limits(pid)
        except (OSError, ValueError):
            continue  # It ended since it was listed.
        place, how = f"container {name} (pid {pid})", f"/proc/{pid}/limits"
        yield from format_failures(judge_container(place, asked, seen, how))


def tell_old_running(found: Iterable[RunningContainer], asked: ContainerPolicy) -> Iterator[str]:
    """Yield the same of containers that were found among the processes of this host."""
    return tell_old(((one.container.name, one.process.pid) for one in found), asked)
