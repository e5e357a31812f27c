# SPDX-License-Identifier: BSD-2-Clause
"""Choose the fixes that are worth most when each green host has a price: a minimum cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

    Pattern = Tuple[int, int, int]


def find_closure(patterns: Sequence[Pattern], fixes: int, change: int, price: int, per: int) -> int:
    """Return the fixes, as bits, for which the worth of the hosts less what it costs is most.

    This is the selection of projects (Picard 1976): what a pattern is worth flows to the fixes
    that it lacks, as much as each costs. Where it overflows, the fixes are worth their cost.

    :param patterns: The fixes that hosts lack, how many hosts, and what each of those costs.
    :param change: What each fix costs.
    :param price: What ``per`` green hosts are worth.
    """
    flow = _Flow(patterns, fixes, change * per)
    for index, (_mask, count, cost) in enumerate(patterns):
        left = count * (price - cost * per)
        while left > 0:
            left = flow.push(index, left)
    return flow.overflown


def list_bits(mask: int) -> Iterator[int]:
    """Yield the places of the bits of a number, of which few are set, the lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class _Flow:
    """How much each pattern gives to each fix, and what room is left there."""

    def __init__(self, patterns: Sequence[Pattern], fixes: int, room: int) -> None:
        self.lacked = [list(list_bits(mask)) for mask, _count, _cost in patterns]
        self.room = [room] * fixes
        self.given: list[dict[int, int]] = [{} for _fix in range(fixes)]
        self.overflown = 0

    def push(self, pattern: int, amount: int) -> int:
        """Give as much as one way holds, and return what is left; 0 where nothing holds more."""
        came: dict[int, tuple[int, int]] = {
            fix: (-1, pattern) for fix in self.lacked[pattern] if not self.overflown >> fix & 1
        }
        queue = list(came)
        for fix in queue:
            if self.room[fix]:
                return amount - self._give(came, fix, amount)
            for other in self.given[fix] if len(came) < len(self.room) else ():
                for more in self.lacked[other]:
                    if more not in came and not self.overflown >> more & 1:
                        came[more] = (fix, other)
                        queue.append(more)
        self.overflown |= sum(1 << fix for fix in queue)
        return 0

    def _give(self, came: dict[int, tuple[int, int]], end: int, amount: int) -> int:
        """Give along a way that ends at a fix with room, and return how much."""
        way = [(end, *came[end])]
        while way[-1][1] >= 0:
            fix = way[-1][1]
            way.append((fix, *came[fix]))
        taken = [self.given[before][pattern] for _fix, before, pattern in way if before >= 0]
        amount = min(amount, self.room[end], *taken)
        self.room[end] -= amount
        for fix, before, pattern in way:
            self.given[fix][pattern] = self.given[fix].get(pattern, 0) + amount
            if before >= 0:
                self.given[before][pattern] -= amount
                if not self.given[before][pattern]:
                    del self.given[before][pattern]
        return amount
