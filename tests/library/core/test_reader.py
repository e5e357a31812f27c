# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits that are not numbers of setrlimit(2) are read by rules of their own."""

from __future__ import annotations

import pytest
from mlhost_limits.core.reader import LONGEST_WORD, Limit, PolicyError, read_limits

ITEMS = ("chroot", "nonewprivs", "nice", "priority")


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("chroot", "/" + "a" * (LONGEST_WORD - 1), Limit(text="/" + "a" * (LONGEST_WORD - 1))),
        ("chroot", "/" + "a" * LONGEST_WORD, None),
        ("chroot", "a", None),
        ("chroot", "/A", None),
        ("nonewprivs", 0, Limit(0, 0)),
        ("nonewprivs", 1, Limit(1, 1)),
        ("nonewprivs", 2, None),
        ("nice", -20, Limit(40, 40)),
        ("nice", 19, Limit(1, 1)),
        ("nice", 20, None),
        ("nice", -21, None),
        ("priority", -20, Limit(-20, -20)),
        ("priority", True, None),
    ],
)
def test_what_is_accepted_of_each(name: str, value: object, limit: Limit | None) -> None:
    problems: list[str] = []
    found = read_limits("p", {name: value}, ITEMS, problems)
    assert bool(problems) is (limit is None)
    assert limit is None or found == {name: limit}


def test_a_refusal_is_told_as_a_sentence() -> None:
    assert str(PolicyError(["a: is wrong", "b: is\x1b too"])) == "a: is wrong; b: is? too"


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({"soft": 1, "hard": 1, "max": 1}, []),
        ({"soft": 2, "hard": 1}, ["p.nofile: soft 2 is above hard 1"]),
        ({"soft": 2, "max": 1}, ["p.nofile: soft 2 is above max 1"]),
        ({"hard": 2, "max": 1}, ["p.nofile: hard 2 is above max 1"]),
        (
            {"soft": 3, "hard": 2, "max": 1},
            ["p.nofile: soft 3 is above hard 2", "p.nofile: hard 2 is above max 1"],
        ),
        ({"soft": 1, "low": 1}, ["p.nofile.low: is unknown; accepted are soft, hard, max"]),
        (
            {"low": 1},
            [
                "p.nofile.low: is unknown; accepted are soft, hard, max",
                "p.nofile: states no bound; accepted are soft, hard, max",
            ],
        ),
    ],
)
def test_bounds_stand_in_their_order(value: object, problems: list[str]) -> None:
    found: list[str] = []
    read_limits("p", {"nofile": value}, ("nofile",), found)
    assert found == problems


def test_a_limit_that_is_not_known_is_refused() -> None:
    problems: list[str] = []
    assert read_limits("p", {"nofil": 1, "nofile": 2}, ("nofile",), problems) == {
        "nofile": Limit(2, 2)
    }
    assert problems == ["p.nofil: is unknown; accepted are nofile"]
