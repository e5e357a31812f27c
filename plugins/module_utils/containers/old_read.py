# SPDX-License-Identifier: BSD-2-Clause
"""Tell which running containers go on with less than a policy asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.report import format_failures
from .findings import judge_container
from .limits_read import read_container_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import Asked


def tell_old(containers: Iterable[tuple[str, int]], asked: Asked) -> Iterator[str]:
    """Yield a line for each bound that a container falls short of.

    :param containers: The name of each, and the pid of its first process.
    """
    for name, pid in containers:
        try:
            seen = read_container_limits(pid)
        except (OSError, ValueError):
            continue  # It ended since it was listed.
        place, how = f"container {name} (pid {pid})", f"/proc/{pid}/limits"
        found = judge_container(place, asked, seen.limits, seen.shm_size, how, seen.levels)
        yield from format_failures(found)
