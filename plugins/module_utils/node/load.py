# SPDX-License-Identifier: BSD-2-Clause
"""Find the processes that are nearest to their limits, for each user and unit."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ..core.cgroup import find_home, is_container
from ..core.values import NamedTuple

MOST_GROUPS = 50
"""Pairs of user and unit that are told of; a host may have thousands of units."""


class Load(NamedTuple):
    """What one process holds of what it may: descriptors, and bytes of memory.

    ``open_files`` is ``None`` where that could not be seen. ``locked`` is what mlock(2) holds,
    ``pinned`` what devices do, for RDMA.
    """

    pid: int
    name: str
    uid: int
    cgroup: str
    open_files: int | None
    nofile: int
    locked: int
    pinned: int
    memlock: int


class Group(NamedTuple):
    """The processes of one user in one unit: their number, and the worst of them.

    ``fullest`` has the largest part of its descriptors open, ``None`` where none could be seen;
    ``heaviest`` holds most of the memory that it may lock.
    """

    uid: int
    unit: str
    processes: int
    fullest: Load | None
    heaviest: Load
    locked: int
    pinned: int


def group_loads(loads: Iterable[Load]) -> list[Group]:
    """Return the processes by user and unit, those nearest to a limit first."""
    members: dict[tuple[int, str], list[Load]] = {}
    for load in loads:
        members.setdefault((load.uid, name_unit(load.cgroup)), []).append(load)
    groups = [_sum_up(uid, unit, found) for (uid, unit), found in members.items()]
    return sorted(groups, key=lambda group: (-_find_part(group), group.uid, group.unit))


def _sum_up(uid: int, unit: str, loads: list[Load]) -> Group:
    return Group(
        uid,
        unit,
        len(loads),
        fullest=max((one for one in loads if one.open_files is not None), key=_fill, default=None),
        heaviest=max(loads, key=_weigh),
        locked=sum(one.locked for one in loads),
        pinned=sum(one.pinned for one in loads),
    )


def _fill(load: Load) -> float:
    """Return which part of its descriptors a process has open; one that may have none is full."""
    return (load.open_files or 0) / load.nofile if load.nofile else 1.0


def _weigh(load: Load) -> float:
    """Return which part of the memory that it may lock a process holds."""
    held = max(load.locked, load.pinned)  # The kernel holds each against the limit by itself.
    return held / load.memlock if load.memlock else float(held > 0)


def _find_part(group: Group) -> float:
    filled = _fill(group.fullest) if group.fullest else 0.0
    return max(filled, _weigh(group.heaviest))


@lru_cache(maxsize=4096)  # Many processes share a cgroup.
def name_unit(cgroup: str) -> str:
    """Return the unit that a process lives in; all sessions bear one name, and all containers.

    :param cgroup: /proc/PID/cgroup.
    """
    home = find_home(cgroup)
    if home.session:
        return "session"
    if home.unit:
        return home.user_unit or home.unit
    return "container" if is_container(cgroup) else ""
