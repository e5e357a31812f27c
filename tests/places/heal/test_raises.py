# SPDX-License-Identifier: GPL-3.0-or-later
"""What is raised: never down, never beyond the policy, and never what only root may raise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.heal.raises import Change, find_short, fold, plan_limits

VALUES = st.integers(0, 200) | st.just(UNLIMITED)


@st.composite
def pairs(draw: st.DrawFn) -> Rlimit:
    hard = draw(VALUES)
    return Rlimit(min(draw(VALUES), hard), hard)


@st.composite
def limits(draw: st.DrawFn) -> Limit:
    pair = draw(pairs())
    most = draw(st.none() | VALUES.map(lambda value: max(value, pair.hard)))
    bounds = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    soft, hard = (value if is_stated else None for value, is_stated in zip(pair, bounds))
    return Limit(soft, hard, most)


@given(limits(), pairs(), st.integers(0, 200), st.booleans())
def test_nothing_is_lowered_and_nothing_is_given_that_nobody_asked_for(
    limit: Limit, has: Rlimit, nr_open: int, is_root: bool
) -> None:
    planned = dict(plan_limits({"nofile": limit}, {"nofile": has}, nr_open, is_root))
    after = planned.get("nofile", has)
    assert after != has or not planned
    assert after.soft >= has.soft
    assert after.hard >= has.hard
    assert after.soft <= after.hard
    assert after.hard in (has.hard, min(max(limit.hard or 0, limit.soft or 0), nr_open))
    assert after.soft <= max(has.soft, limit.soft or 0)
    assert is_root or after.hard == has.hard
    if is_root and nr_open >= 200 and UNLIMITED not in (limit.soft, limit.hard):
        assert not list(find_short({"nofile": limit}, {"nofile": after}))


@pytest.mark.parametrize(
    ("item", "is_root", "after"),
    [
        ("nofile", True, [("nofile", Rlimit(5000, 5000))]),
        ("nofile", False, [("nofile", Rlimit(4096, 4096))]),
        ("memlock", True, [("memlock", Rlimit(9000, 9000))]),
        ("memlock", False, [("memlock", Rlimit(4096, 4096))]),
    ],
)
def test_only_nofile_ends_at_nr_open(
    item: str, is_root: bool, after: list[tuple[str, Rlimit]]
) -> None:
    has = {item: Rlimit(1024, 4096)}
    assert list(plan_limits({item: Limit(9000, 9000)}, has, 5000, is_root)) == after


@pytest.mark.parametrize(
    ("limit", "short"),
    [
        (Limit(1024, 4096), []),
        (Limit(soft=1024), []),
        (Limit(hard=4096), []),
        (Limit(soft=1025), ["nofile 1024:4096, owed 1025:1025"]),
        (Limit(hard=4097), ["nofile 1024:4096, owed 0:4097"]),
        (Limit(1024, 4097), ["nofile 1024:4096, owed 1024:4097"]),
    ],
)
def test_what_has_just_enough_lacks_nothing(limit: Limit, short: list[str]) -> None:
    """Of what the process has no such limit, nothing is said or raised."""
    has = {"nofile": Rlimit(1024, 4096)}
    assert list(find_short({"core": Limit(5, 5), "nofile": limit}, has)) == short
    planned = plan_limits({"core": Limit(5, 5), "nofile": limit}, has, 2**20, True)
    assert bool(list(planned)) is bool(short)
    none = Rlimit(0, 0)
    assert list(find_short({"nofile": Limit(max=5)}, {"nofile": none})) == []


def test_what_stays_short_is_said_with_both_numbers() -> None:
    owed, has = {"nofile": Limit(soft=65536)}, {"nofile": Rlimit(1024, 4096)}
    assert list(plan_limits(owed, has, 2**20, False)) == [("nofile", Rlimit(4096, 4096))]
    assert list(find_short(owed, has)) == ["nofile 1024:4096, owed 65536:65536"]
    assert not list(find_short({"nofile": Limit(max=10)}, has))


def test_what_reads_the_same_is_told_once() -> None:
    first = Change("limit", "nofile", "7:1", (1024, 4096), (65536, 65536), "a 7", "session:alice")
    second = first._replace(target="8:1", who="b 8")
    third = first._replace(place="session:bob")
    told = [(text, len(changes)) for text, changes in fold([first, second, third])]
    assert told == [
        ("session:alice nofile 1024:4096 -> 65536:65536", 2),
        ("session:bob nofile 1024:4096 -> 65536:65536", 1),
    ]
