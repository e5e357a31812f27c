# SPDX-License-Identifier: BSD-2-Clause
"""Plan what is raised on the living: never down, never above what a policy or the kernel allows.

Source: setrlimit(2) and prlimit(2), ``do_prlimit()`` in kernel/sys.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.reader import Limit
from ..core.values import NamedTuple, Rlimit, format_pair, format_quantity
from ..systemd.want import find_target

LIMIT, SYSCTL, TASKS, SHM = "limit", "sysctl", "tasks", "shm"


class Change(NamedTuple):
    """One thing that is raised, ``before`` and ``after`` in the kernel's unit.

    ``kind`` is what it is, ``item`` what check calls it, ``target`` of what: a process with its
    start (``4711:98765``), a unit, a container's id, or nothing for the host. ``who`` says the
    same to people; ``place`` is where that lives.
    """

    kind: str
    item: str
    target: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    who: str
    place: str = ""

    @property
    def text(self) -> str:
        """What is raised, for people: ``nofile 1024:4096 -> 65536:1048576``."""
        return f"{self.item} {self.format(self.before)} -> {self.format(self.after)}"

    def format(self, value: Sequence[int]) -> str:
        """Return a value as people read it."""
        if self.kind == LIMIT:
            return format_pair(self.item, Rlimit(*value))
        return " ".join(format_quantity(one, "bytes" if self.kind == SHM else "") for one in value)


def plan_limits(
    owed: Mapping[str, Limit], has: Mapping[str, Rlimit], nr_open: int, is_root: bool
) -> Iterator[tuple[str, Rlimit]]:
    """Yield each limit that is raised, and to what.

    :param nr_open: What no hard limit of nofile may be above.
    :param is_root: Whether hard limits may be raised.
    """
    for item, limit in owed.items():
        now = has.get(item)
        if now is None:
            continue
        wanted = find_target(limit, now)
        hard = min(wanted.hard, nr_open) if item == "nofile" else wanted.hard
        hard = max(hard, now.hard) if is_root else now.hard
        soft = max(min(wanted.soft, hard), now.soft)
        if (soft, hard) != now:
            yield item, Rlimit(soft, hard)


def find_short(owed: Mapping[str, Limit], has: Mapping[str, Rlimit]) -> Iterator[str]:
    """Yield what a process lacks of what it is owed, and cannot get while it runs.

    What is above the most that is asked for stays: nothing is taken from the living.
    """
    for item, limit in owed.items():
        now = has.get(item)
        soft = limit.soft or 0
        hard = soft if limit.hard is None else limit.hard
        if now is None or (now.soft >= soft and now.hard >= hard):
            continue
        wanted = format_pair(item, Rlimit(soft, hard))
        yield f"{item} {format_pair(item, now)}, owed {wanted}"


def fold(changes: Sequence[Change]) -> list[tuple[str, list[Change]]]:
    """Return the changes that read the same together, in their order."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(f"{change.place} {change.text}", []).append(change)
    return list(found.items())
