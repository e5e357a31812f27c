# SPDX-License-Identifier: BSD-2-Clause
"""All processes of a host, by numbers that the kernel gives out again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..host.door import read_kernel_text
from .tree_read import Member, Tree, find_bounds, level_user
from .trends import Level

_KERNEL_THREAD = 0x200000
"""PF_KTHREAD of the kernel's flags of a task."""


class Everyone(Tree):
    """All processes of this host; threads of the kernel are none."""

    def __init__(self) -> None:
        super().__init__(1)
        self._last = read_last()

    def find(self) -> tuple[list[Member], list[Member]]:
        """Look who is new, and who has ended: one whose number was given out again is both."""
        last = read_last()
        again = self.list_again(last)
        self._strangers = frozenset(
            one for one in self._strangers if not is_between(self._last, one, last)
        )
        for pid in again:
            del self.members[pid]
        new, gone = super().find()
        self._last = last
        return new, [*again.values(), *gone]

    def list_again(self, last: int) -> dict[int, Member]:
        """Return the members whose number may be somebody else's since the last look.

        :param last: The number that was given out last.
        """
        return {pid: one for pid, one in self.members.items() if is_between(self._last, pid, last)}

    def _is_of_run(self, _pid: int, fields: Sequence[str]) -> bool:
        return not int(fields[6]) & _KERNEL_THREAD


def read_last() -> int:
    """Return the number that was given to a process last; the next is a higher one, up to the
    largest, from which it goes on with the lowest (``alloc_pid()``)."""
    return int(read_kernel_text("/proc/loadavg").split()[4])


def is_between(first: int, pid: int, last: int) -> bool:
    """Tell whether a number was given out after one and not after another."""
    return first < pid <= last if first <= last else not last < pid <= first


def sum_users(members: Iterable[Member]) -> Iterator[Level]:
    """Yield how many tasks each user has, where nproc binds: by what was seen of each process when
    its turn was."""
    members = list(members)
    bound = find_bounds(members)
    counts = dict.fromkeys(bound, 0)
    for one in members:
        if one.uid in counts:
            counts[one.uid] += one.threads
    for uid, used in counts.items():
        yield level_user(uid, used, bound[uid])
