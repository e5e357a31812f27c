# SPDX-License-Identifier: BSD-2-Clause
"""Read the limits that a container really has, from the host."""

from __future__ import annotations

import os

from ..core.rlimit import UNLIMITED
from ..host.door import read_kernel_text
from ..host.process import read_limits
from ..systemd.tasks import Level
from ..systemd.tasks_read import read_levels
from .findings import ContainerLimits


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
