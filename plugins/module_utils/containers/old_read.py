# SPDX-License-Identifier: BSD-2-Clause
"""Tell which running containers go on with less than a policy asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.report import format_failures
from .findings import judge_container
from .limits_read import read_container_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import ContainerPolicy
    from .read import RunningContainer


def tell_old(containers: Iterable[tuple[str, int]], asked: ContainerPolicy) -> Iterator[str]:
    """Yield a line for each bound that a container falls short of.

    :param containers: The name of each, and the pid of its first process.
    """
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
