# SPDX-License-Identifier: BSD-2-Clause
"""Read what a policy says of containers, whichever engine makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..core.keys import Key
from ..core.reader import Limit, read_limits, read_quantity
from ..core.rlimit import RLIMITS, UNLIMITED

TYPE_CHECKING = False
if TYPE_CHECKING:

    class Asked(Protocol):
        """What a policy asks of one engine's containers."""

        @property
        def limits(self) -> Mapping[str, Limit]: ...
        @property
        def shm_size(self) -> int | None: ...
        @property
        def tasks(self) -> int | None: ...


SHM = "shm_size"
"""The item of a requirement on the size of a container's /dev/shm."""

TASKS = "tasks"
"""The item of a requirement on the processes and threads that its cgroups let it have."""

SHM_KEY = Key("size above 0", "the size of its /dev/shm")

TASKS_KEY = Key("tasks", "how many processes and threads its cgroups let it have")

CONTAINER_ITEMS = tuple(name for name in RLIMITS if name != "as")


def read_container_limits(
    path: str, raw: object, engine: str, problems: list[str]
) -> dict[str, Limit]:
    """Return limits of which each has both bounds, and a number of files."""
    limits = read_limits(f"{path}.limits", raw, CONTAINER_ITEMS, problems)
    for name, limit in limits.items():
        if (limit.soft is None) != (limit.hard is None):
            problems.append(f"{path}.limits.{name}: {engine} needs soft and hard, or one value")
    if limits.get("nofile", Limit()).hard == UNLIMITED:
        problems.append(
            f"{path}.limits.nofile: 'unlimited' lets no container start; a number is accepted"
        )
    return limits


def read_shm_size(path: str, section: Mapping[str, object], problems: list[str]) -> int | None:
    """Return the bytes of /dev/shm; nothing where it is not said."""
    if SHM not in section:
        return None
    size = read_quantity(f"{path}.{SHM}", section[SHM], "bytes", problems)
    if size in (0, UNLIMITED):
        problems.append(f"{path}.{SHM}: a size above 0 is accepted")
    return size


def read_tasks(path: str, section: Mapping[str, object], problems: list[str]) -> int | None:
    """Return how many processes and threads a container may have; nothing where it is not said."""
    if TASKS not in section:
        return None
    value = read_quantity(f"{path}.{TASKS}", section[TASKS], "", problems)
    if value == 0:
        problems.append(f"{path}.{TASKS}: a number above 0, or 'unlimited', is accepted")
    return value
