# SPDX-License-Identifier: GPL-3.0-or-later
"""Before its keys are read, a policy that Ansible or Python gave is small, flat and readable."""

from __future__ import annotations

import pytest
from mlhost_limits.core.policy_shape import MOST_VALUES, find_misshapes, join_path
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.schema import load_policy

LOOP: list[object] = []
LOOP.append(LOOP)
WIDE = [0] * 1000
FINE = {"sessions": [{"users": ["alice"], "limits": {"nofile": 5}}]}
WAIVER = {"what": "nofile", "where": "kernel", "why": "it is borne", "until": "2030-01-01"}


def refusal(policy: object) -> list[str]:
    try:
        load_policy(policy, "none")
    except PolicyError as exc:
        return list(exc.problems)
    return []


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"a": LOOP}, f"a{'[0]' * 20}: is nested deeper than 20 levels"),
        ({"a": [WIDE] * 1000}, "policy: holds more than 100000 values"),
        ({"a": {"k" * 300: 1}}, "a: a key has 300 characters; 256 are accepted"),
        ({"k" * 300: 1}, "policy: a key has 300 characters; 256 are accepted"),
        ({"a": [10**40]}, "a[0]: a number has more than 40 digits"),
        ({"a": -(10**5000)}, "a: a number has more than 40 digits"),
        ({"a": float("inf")}, "a: inf is not a number"),
        ({"a": float("nan")}, "a: nan is not a number"),
        ({"a": "x" * 70000}, "a: has 70000 characters; at most 65536 are accepted"),
    ],
)
def test_what_no_policy_can_be_is_refused(policy: object, problem: str) -> None:
    assert refusal(policy) == [problem]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"a": "x" * 65536}, ""),
        ({"a": "x" * 65537}, "a: has 65537 characters; at most 65536 are accepted"),
        ({"a": {"k" * 256: 1}}, ""),
        ({"a": {"k" * 257: 1}}, "a: a key has 257 characters; 256 are accepted"),
        ({"a": 10**40 - 1}, ""),
        ({"a": 10**40}, "a: a number has more than 40 digits"),
        ({"a": 1 - 10**40}, ""),
    ],
)
def test_what_is_just_large_enough_is_accepted(policy: object, problem: str) -> None:
    told = [one for one in refusal(policy) if one.startswith("a: ")]
    assert told == ([problem] if problem else [])


def test_no_more_than_a_hundred_are_told() -> None:
    assert len(refusal({"a": [10**50] * 1000})) == 100


@pytest.mark.parametrize("char", ["\0", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\ud800"])
def test_a_text_without_a_rule_of_its_own_holds_no_unfit_character(char: str) -> None:
    code = f"holds the character U+{ord(char):04X}"
    assert refusal({**FINE, "waivers": [{**WAIVER, "why": f"a{char}"}]}) == [
        f"waivers[0].why: {code}"
    ]
    assert refusal({**FINE, "waivers": [{**WAIVER, "hosts": ["a", char]}]}) == [
        f"waivers[0].hosts[1]: {code}"
    ]
    (told,) = refusal({**FINE, f"a{char}": None})
    assert told.startswith("policy.a?: is unknown")
    (told,) = refusal(FINE | {5: None})
    assert told.startswith("policy.5: is unknown")


def test_lines_tabs_and_the_bytes_of_a_path_are_fit() -> None:
    assert refusal({**FINE, "waivers": [{**WAIVER, "why": "a\tb\nc\r\n\u00e9\udcff"}]}) == []


def test_so_many_values_are_read_and_a_key_of_that_length_is_a_path() -> None:
    """The list itself counts."""
    assert find_misshapes([0] * (MOST_VALUES - 1)) == []
    assert find_misshapes([0] * MOST_VALUES) == [f"policy: holds more than {MOST_VALUES} values"]
    assert join_path("a", "k" * 256) == "a." + "k" * 256
    assert len(join_path("a", "k" * 257)) < 100
    assert (join_path("", "k"), join_path("a", 5)) == ("k", "a.5")
