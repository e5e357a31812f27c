# SPDX-License-Identifier: BSD-2-Clause
"""Raise soft limits of this process to the hard ones, which needs no privilege."""

from __future__ import annotations

import resource

from ..core.values import NamedTuple
from .guard_levels import Level

_AT_ONCE = {"nofile": resource.RLIMIT_NOFILE, "memlock": resource.RLIMIT_MEMLOCK}
_BY_WHERE = {"RLIMIT_NOFILE": resource.RLIMIT_NOFILE, "RLIMIT_NPROC": resource.RLIMIT_NPROC}
_HIGHEST_NOFILE = 2**20
"""At once: a program that closes every descriptor it may have is slow with 2**30."""


class Raised(NamedTuple):
    """What a soft limit was and is; ``None`` stands for no limit."""

    item: str
    before: int | None
    now: int | None

    def __str__(self) -> str:
        before, now = ("unlimited" if one is None else one for one in (self.before, self.now))
        return f"{self.item}: soft {before} -> {now}"


def raise_soft_limits() -> list[Raised]:
    """Raise nofile, at most to 1048576, and memlock to the hard limits; none is lowered."""
    raised = []
    for item, number in _AT_ONCE.items():
        soft, hard = resource.getrlimit(number)
        most = _HIGHEST_NOFILE if item == "nofile" else resource.RLIM_INFINITY
        new = _choose_soft(soft, hard, most)
        if new != soft and _set(number, new, hard):
            before, now = (None if one == resource.RLIM_INFINITY else one for one in (soft, new))
            raised.append(Raised(item, before, now))
    return raised


def _choose_soft(soft: int, hard: int, most: int) -> int:
    """Return the soft limit that is wanted, where -1 means no limit."""
    endless = float("inf")
    values = [endless if one == resource.RLIM_INFINITY else one for one in (soft, hard, most)]
    new = max(values[0], min(values[1], values[2]))
    return resource.RLIM_INFINITY if new == endless else int(new)


def raise_to_hard(level: Level) -> int:
    """Raise the soft limit that a level names, and return to what; 0 where nothing is left."""
    number = _BY_WHERE.get(level.where)
    if number is None:
        return 0
    soft, hard = resource.getrlimit(number)
    return hard if soft != hard and _set(number, hard, hard) else 0


def _set(number: int, soft: int, hard: int) -> bool:
    """Set a soft limit; the kernel refuses any where the hard limit is above fs.nr_open by now."""
    try:
        resource.setrlimit(number, (soft, hard))
    except (OSError, ValueError):
        return False
    return True


def read_again(level: Level) -> Level:
    """Return a level with the soft limit as it is now."""
    number = _BY_WHERE.get(level.where)
    soft = resource.RLIM_INFINITY if number is None else resource.getrlimit(number)[0]
    return level if soft == resource.RLIM_INFINITY else level._replace(limit=soft)
