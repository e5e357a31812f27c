# SPDX-License-Identifier: BSD-2-Clause
"""Put the hosts of a plan in waves: a canary of each kind, then shares, few of a group at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .core.values import NamedTuple

SHARES = (10, 50, 100)
"""How many of the hosts are through after each wave that follows the canaries, in percent."""

_FAILING = 50
"""One host of so many may stay red in a wave before the plan stops; no canary may."""


class Wave(NamedTuple):
    """Hosts in batches, one after the other; more than ``most_failed`` red ones end it all."""

    name: str
    batches: tuple[tuple[str, ...], ...]
    most_failed: int


def plan_waves(
    hosts: Mapping[str, Collection[int]], groups: Mapping[str, Collection[str]], at_once: int
) -> list[Wave]:
    """Return the waves of some hosts.

    Canaries are few hosts that show each fix in each group once. The rest goes by shares, the
    hosts with fewest fixes first.

    :param hosts: By name, the numbers of the fixes that it gets.
    :param groups: By host the groups that it is of; hosts without one are a group as well.
    :param at_once: How many of a group may be in one batch.
    """
    kinds = {
        name: {(fix, group) for fix in fixes for group in groups.get(name) or ("",)}
        for name, fixes in hosts.items()
    }
    canaries = _choose_canaries(kinds)
    rest = sorted(set(hosts) - set(canaries), key=lambda name: (len(hosts[name]), name))
    waves = [Wave("canary", _batch(canaries, groups, at_once), 0)] if canaries else []
    done = 0
    for share in SHARES:
        names = rest[done : -(-len(rest) * share // 100)]
        if names:
            failing = len(names) // _FAILING
            waves.append(Wave(f"{share} %", _batch(names, groups, at_once), failing))
        done += len(names)
    return waves


def _choose_canaries(kinds: Mapping[str, Collection[tuple[int, str]]]) -> list[str]:
    """Return few hosts that have every kind between them: a greedy cover."""
    alike: dict[frozenset[tuple[int, str]], str] = {}
    for name in sorted(kinds):
        alike.setdefault(frozenset(kinds[name]), name)
    missing = set().union(*alike)
    chosen = []
    while missing:
        best = max(alike, key=lambda one: (len(one & missing), -len(one)))
        chosen.append(alike.pop(best))
        missing -= best
    return sorted(chosen)


def _batch(
    names: Sequence[str], groups: Mapping[str, Collection[str]], at_once: int
) -> tuple[tuple[str, ...], ...]:
    """Return batches in which no group has more hosts than it may, as few as come of it."""
    batches: list[list[str]] = []
    counts: list[dict[str, int]] = []
    first: dict[str, int] = {}  # By group, the first batch with room for it.
    for name in names:
        mine = groups.get(name) or ("",)
        at = max(first.get(group, 0) for group in mine)
        while at < len(batches) and any(counts[at].get(one, 0) >= at_once for one in mine):
            at += 1
        if at == len(batches):
            batches.append([])
            counts.append({})
        batches[at].append(name)
        for group in mine:
            counts[at][group] = counts[at].get(group, 0) + 1
            while first.get(group, 0) < len(counts) and (
                counts[first.get(group, 0)].get(group, 0) >= at_once
            ):
                first[group] = first.get(group, 0) + 1
    return tuple(map(tuple, batches))
