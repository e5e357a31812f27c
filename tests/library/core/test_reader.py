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
