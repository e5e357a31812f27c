# SPDX-License-Identifier: BSD-2-Clause
"""Choose the cheapest set of fixes that makes so many hosts green, and say how good that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations, product
from operator import or_

from .core.values import NamedTuple
from .fleet_closure import find_closure, list_bits
from .fleet_fixes import COSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .fleet_fixes import Fix

CHANGE = 50
"""What a fix weighs by itself, on however many hosts: somebody must read it, and try it."""

_MOST_CHECKS = 6_000_000
"""Patterns looked at after which the best choice so far is good enough: some seconds."""
_NEAR = 1.01
"""A choice so near to the least that is possible is good enough."""

_TOO_FEW = 10**12


class Choice(NamedTuple):
    """Fixes by their numbers, the hosts that they make green, and what that weighs.

    No choice weighs less than ``least``.
    """

    fixes: tuple[int, ...]
    hosts: tuple[int, ...]
    weight: int
    least: int


def choose_fixes(
    fixes: Sequence[Fix], lacking: Mapping[int, frozenset[int]], wanted: int
) -> Choice:
    """Return the cheapest fixes, and hosts, so that ``wanted`` more hosts are green.

    Of a host counts the dearest thing that must happen on it, once, and each fix costs CHANGE.
    The best for a price of each green host is a cut of a graph; the two prices beside what is
    wanted bound what it must weigh. Between them fixes are added, dropped and exchanged until
    nothing gets better.

    :param lacking: By host the fixes that it lacks; -1 for one that is not known.
    :raises ValueError: If so many cannot be made green.
    """
    search = _Search(fixes, lacking, wanted)
    most = sum(map(len, search.hosts.values()))
    if wanted > most:
        raise ValueError(f"{wanted} hosts were asked for; known fixes make {most} green")
    chosen, least = search.run()
    taken = search.take(chosen)
    used = {number for host in taken for number in lacking[host]}
    return Choice(tuple(sorted(used)), tuple(sorted(taken)), search.weigh(chosen), least)


class _Search:
    """The hosts by the fixes that they lack, as bits of a number, the cheapest first."""

    def __init__(
        self, fixes: Sequence[Fix], lacking: Mapping[int, frozenset[int]], wanted: int
    ) -> None:
        self.wanted, self.checks = wanted, 0
        self.hosts: dict[int, list[int]] = {}
        for host, mine in lacking.items():
            if -1 not in mine:
                self.hosts.setdefault(sum(1 << one for one in mine), []).append(host)
        costs = [COSTS[fix.cost] for fix in fixes]
        dearest = {mask: max(costs[bit] for bit in list_bits(mask)) for mask in self.hosts}
        self.patterns = sorted(
            ((mask, len(hosts), dearest[mask]) for mask, hosts in self.hosts.items()),
            key=lambda one: (one[2], -one[1], one[0]),
        )
        self.bits = [1 << bit for bit in range(len(fixes))]
        self.all = sum(self.bits)

    def run(self) -> tuple[int, int]:
        """Return the best set of fixes that was found, and what none weighs less than."""
        if self.wanted == sum(count for _mask, count, _cost in self.patterns):
            every = reduce(or_, self.hosts, 0)
            return every, self.weigh(every)
        fewer, more, least = self.bound()
        best = min(self.drop(more), self.drop(self.fill(fewer)), key=self.weigh)
        while self.weigh(best) > _NEAR * least and self.checks < _MOST_CHECKS:
            better = self.improve(best)
            if not better:
                break
            best = better
        return best, least

    def bound(self) -> tuple[int, int, int]:
        """Return the best choices beside what is wanted, with fewer and more, and the bound."""
        few, many = (0, 0, 0), (*self.total(self.all), self.all)
        while many[0] > few[0]:
            price, hosts = many[1] - few[1], many[0] - few[0]
            chosen = find_closure(self.patterns, len(self.bits), CHANGE, price, hosts)
            found = (*self.total(chosen), chosen)
            if price * found[0] - hosts * found[1] <= price * few[0] - hosts * few[1]:
                break
            few, many = (few, found) if found[0] >= self.wanted else (found, many)
        share = (many[1] - few[1]) * (self.wanted - few[0])
        return few[2], many[2], few[1] - (-share // max(1, many[0] - few[0]))

    def total(self, chosen: int) -> tuple[int, int]:
        """Return how many hosts fixes make green, and what that weighs."""
        able = [(count, cost) for mask, count, cost in self.patterns if not mask & ~chosen]
        weight = sum(count * cost for count, cost in able) + CHANGE * bin(chosen).count("1")
        return sum(count for count, _cost in able), weight

    def weigh(self, chosen: int) -> int:
        """Return what fixes weigh with the cheapest hosts, and very much if these are too few."""
        self.checks += len(self.patterns)
        left, weight = self.wanted, CHANGE * bin(chosen).count("1")
        for mask, count, cost in self.patterns:
            if not mask & ~chosen:
                if count >= left:
                    return weight + cost * left
                left -= count
                weight += cost * count
        return weight + _TOO_FEW * left

    def take(self, chosen: int) -> list[int]:
        """Return the cheapest hosts that fixes make green."""
        able = [self.hosts[mask] for mask, _count, _cost in self.patterns if not mask & ~chosen]
        return [host for hosts in able for host in hosts][: self.wanted]

    def drop(self, chosen: int) -> int:
        """Return fixes without those that need not be, the one that saves most first."""
        weight = self.weigh(chosen)
        while chosen and self.checks <= _MOST_CHECKS:
            least, without = min(
                (self.weigh(chosen ^ bit), chosen ^ bit) for bit in self._in(chosen)
            )
            if least >= weight:
                break
            weight, chosen = least, without
        return chosen

    def fill(self, chosen: int, banned: int = 0) -> int:
        """Return fixes with what makes them enough: what most hosts lack for what it adds."""
        weight = self.weigh(chosen)
        while weight >= _TOO_FEW:
            gains = (
                (self._gain(mask, chosen, cost) * count, -mask)
                for mask, count, cost in self.patterns
                if mask & ~chosen and not mask & banned
            )
            best = max(gains, default=None)
            if best is None:
                break
            chosen |= -best[1]
            weight = self.weigh(chosen)
        return chosen

    def _gain(self, mask: int, chosen: int, cost: int) -> float:
        return 1 / (CHANGE * bin(mask & ~chosen).count("1") + cost)

    def improve(self, chosen: int) -> int:
        """Return better fixes that are one step away, or 0."""
        weight = self.weigh(chosen)
        for other in self._list_steps(chosen):
            if self.weigh(other) < weight:
                return self.drop(other)
            if self.checks > _MOST_CHECKS:
                break
        return 0

    def _list_steps(self, chosen: int) -> Iterator[int]:
        """Yield what comes of exchanging one fix, of leaving one or two, of adding a pattern."""
        mine = self._in(chosen)
        for gone, come in product(mine, self._in(self.all & ~chosen)):
            yield chosen ^ gone ^ come
        for gone in [*mine, *(one | two for one, two in combinations(mine, 2))]:
            yield self.drop(self.fill(chosen & ~gone, gone))
        for mask, _count, _cost in sorted(self.patterns, key=lambda one: -one[1]):
            if mask & ~chosen:
                yield self.drop(chosen | mask)

    def _in(self, chosen: int) -> list[int]:
        return [bit for bit in self.bits if bit & chosen]
