# SPDX-License-Identifier: BSD-2-Clause
"""Read the limits that a container really has, from the host."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..core.rlimit import UNLIMITED, Rlimit
from ..host.process import read_limits


class ContainerLimits(NamedTuple):
    """What a container has.

    ``shm_size`` is in bytes; ``None`` where /dev/shm is no mount, ``UNLIMITED`` where its tmpfs
    has no size: statfs(2) says 0 blocks then.
    """

    limits: dict[str, Rlimit]
    shm_size: int | None


class Canary(NamedTuple):
    """What a new container gets, or why it is not known.

    ``refusal`` is the engine's own message where it does not start containers: a finding.
    ``reason`` says why nothing could be measured: unknown. Both are empty after a measurement.
    ``leftovers`` names what could not be taken away.
    """

    found: ContainerLimits | None
    refusal: str = ""
    reason: str = ""
    leftovers: str = ""


def read_container_limits(pid: int, proc: str = "/proc") -> ContainerLimits:
    """Return the limits and the /dev/shm of the container whose first process is *pid*.

    :raises OSError: If the process is gone, or the caller is not root.
    """
    limits = read_limits(pid, proc)
    device = f"{proc}/{pid}/root/dev"
    try:
        mounted = os.stat(f"{device}/shm").st_dev != os.stat(device).st_dev
    except FileNotFoundError:
        return ContainerLimits(limits, None)
    if not mounted:
        return ContainerLimits(limits, None)
    size = os.statvfs(f"{device}/shm")
    return ContainerLimits(limits, size.f_blocks * size.f_frsize or UNLIMITED)
