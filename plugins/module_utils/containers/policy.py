# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of the containers of one engine, whichever makes them."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.reader import Key, Limit, read_limits, read_mapping, read_quantity
from ..core.values import RLIMITS, UNLIMITED, NamedTuple, Rlimit, format_quantity

SHM = "shm_size"
"""The item of a requirement on the size of a container's /dev/shm."""

TASKS = "tasks"
"""The item of a requirement on the processes and threads that its cgroups let it have."""

CONTAINER_ITEMS = tuple(name for name in RLIMITS if name != "as")
TASKS_KEY = Key("tasks", "how many processes and threads its cgroups let it have")
KEYS = {
    "limits": Key("limits", "what a container has that states nothing", CONTAINER_ITEMS),
    SHM: Key("size above 0", "the size of its /dev/shm"),
    TASKS: TASKS_KEY,
}


def require_item(item: str) -> None:
    """See that something is a limit of containers.

    :raises ValueError: If it is not one.
    """
    accepted = (*RLIMITS, SHM, TASKS)
    if item not in accepted:
        raise ValueError(f"{item!r} is not a limit; accepted are {', '.join(accepted)}")


class ContainerPolicy(NamedTuple):
    """What a policy asks of one engine's containers; ``shm_size`` in bytes.

    ``users`` are those whose own, rootless containers a check looks at too.
    """

    limits: Mapping[str, Limit] = {}
    shm_size: int | None = None
    tasks: int | None = None
    users: tuple[str, ...] = ()

    @property
    def stated(self) -> dict[str, Rlimit]:
        """Return the limits that a file shall state; one that is only bounded above is not."""
        return {
            item: Rlimit(limit.soft, limit.hard)
            for item, limit in self.limits.items()
            if limit.soft is not None and limit.hard is not None
        }

    def describe_excess(self, path: str, nr_open: int | None) -> str:
        """Return that nofile is above fs.nr_open; nothing where it is not, or unknown."""
        nofile = self.stated.get("nofile")
        if nofile is None or nr_open is None or nofile.hard <= nr_open:
            return ""
        hard = format_quantity(nofile.hard)
        return f"{path}.limits.nofile: {hard} is above fs.nr_open {nr_open}"

    def choose(self, item: str, now: Rlimit, most: int = UNLIMITED) -> Rlimit:
        """Return what is asked of a limit, and what there is now where that is left open."""
        limit = self.limits.get(item, Limit())
        soft = now.soft if limit.soft is None else limit.soft
        hard = now.hard if limit.hard is None else limit.hard
        hard = min(hard, most, UNLIMITED if limit.max is None else limit.max)
        return Rlimit(min(soft, hard), hard)


def read_containers(
    path: str, raw: object, keys: Mapping[str, Key], engine: str, problems: list[str]
) -> ContainerPolicy:
    """Return what stands at a path.

    :param keys: Those that this engine has.
    :param engine: What needs both bounds of a limit, for the message.
    """
    section = read_mapping(path, raw, keys, problems)
    limits = _read_limits(f"{path}.limits", section.get("limits", {}), engine, problems)
    shm_size = _read_above_0(path, section, SHM, "bytes", problems) if SHM in keys else None
    return ContainerPolicy(limits, shm_size, _read_above_0(path, section, TASKS, "", problems))


def _read_limits(path: str, raw: object, engine: str, problems: list[str]) -> dict[str, Limit]:
    """Return limits of which each has both bounds, and a number of files."""
    limits = read_limits(path, raw, CONTAINER_ITEMS, problems)
    for name, limit in limits.items():
        if (limit.soft is None) != (limit.hard is None):
            problems.append(f"{path}.{name}: {engine} needs soft and hard, or one value")
    if limits.get("nofile", Limit()).hard == UNLIMITED:
        problems.append(f"{path}.nofile: 'unlimited' lets no container start; a number is accepted")
    return limits


def _read_above_0(
    path: str, section: Mapping[str, object], key: str, unit: str, problems: list[str]
) -> int | None:
    """Return bytes of /dev/shm, or a number of tasks, which has no unit and may be unlimited."""
    if key not in section:
        return None
    value = read_quantity(f"{path}.{key}", section[key], unit, problems)
    if value in ((0, UNLIMITED) if unit else (0,)):
        what = "a size above 0" if unit else "a number above 0, or 'unlimited',"
        problems.append(f"{path}.{key}: {what} is accepted")
    return value
