# SPDX-License-Identifier: BSD-2-Clause
"""A cgroup that bounds how many tasks it holds: pids.max of cgroups(7)."""

from __future__ import annotations

from ..core.values import NamedTuple


class Level(NamedTuple):
    """One cgroup: the unit that it belongs to, where it lies, and how many tasks it may hold."""

    unit: str
    path: str
    most: int


def cut_levels(levels: list[Level], unit: str) -> list[Level]:
    """Return the levels from a unit's own cgroup upward.

    It is the highest of that name: who owns it may make others below.
    """
    found = [index for index, level in enumerate(levels) if level.unit == unit]
    return levels[found[-1] :] if found else []
