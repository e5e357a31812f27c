# SPDX-License-Identifier: GPL-3.0-or-later
"""Patterns match what glob(3) of the C library matches."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.kernel.glob_pattern import (
    _LONGEST,
    _LONGEST_PART,
    expand_braces,
    is_pattern,
    matches_path,
)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a/*/c", "a/b/c", True),
        ("a/*", "a/b/c", False),
        ("a*c", "a/c", False),
        ("a?c", "abc", True),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[^a-c]x", "dx", True),
        ("[]a]", "]", True),
        ("[ab]*[cd]", "ac", True),
        ("[ab]*[cd]", "c", False),
        ("[ab]*x*[cd]", "axc", True),
        ("[ab]*x*[cd]", "ac", False),
        ("[!]a]", "]", False),
        ("[c-a]", "b", False),
        ("[!c-a]", "b", True),
        ("[a-]", "-", True),
        ("[[:digit:]_]", "7", True),
        ("[[:digit:]_]", "x", False),
        ("[[:nothing:]]", "x", False),
        ("[\\]]", "]", True),
        ("[a", "[a", True),
        ("[!]", "a", False),
        ("[]", "[]", True),
        ("\\*", "*", True),
        ("\\*", "x", False),
        ("a.c", "abc", False),
        ("[a-a]x", "ax", True),
        ("[ab]*[cd]", "axc", True),
        ("a*c", "ac", True),
        ("ab*bc", "abc", False),
        ("a*bb*bc", "abbc", False),
        ("*b*c", "bc", True),
        ("a*x*c", "abc", False),
        ("a" * _LONGEST_PART + "*", "a" * _LONGEST_PART + "b", False),
        ("a" * (_LONGEST_PART - 1) + "*", "a" * _LONGEST_PART + "b", True),
        ("a" * 2 * _LONGEST_PART, "a" * 2 * _LONGEST_PART, True),
    ],
)
def test_a_pattern_matches_part_by_part(pattern: str, path: str, matches: bool) -> None:
    assert matches_path(pattern, path) is matches


@pytest.mark.parametrize(
    ("pattern", "expanded"),
    [
        ("a", ["a"]),
        ("{a,b}", ["a", "b"]),
        ("x{a,b{c,d}}y{,z}", ["xay", "xayz", "xbcy", "xbcyz", "xbdy", "xbdyz"]),
        ("a{}b", ["a{}b"]),
        ("a{b", ["a{b"]),
        ("{}", ["{}"]),
        ("xy{}z{a,b}", ["xy{}za", "xy{}zb"]),
        ("{a{b,c},d}", ["ab", "ac", "d"]),
        ("{a}", ["a"]),
    ],
)
def test_braces_stand_for_several_patterns(pattern: str, expanded: list[str]) -> None:
    assert expand_braces(pattern) == expanded


def test_braces_that_would_stand_for_millions_are_cut_short() -> None:
    assert len(expand_braces("{a,b}" * 16)) == 4096
    assert expand_braces("{a,b}" * 17) == ["{a,b}" * 17]
    longest = "{a,b}".ljust(_LONGEST, "x")
    assert len(expand_braces(longest)) == 2
    assert expand_braces(f"{longest}x") == [f"{longest}x"]


def test_what_makes_a_pattern() -> None:
    assert all(map(is_pattern, ("a*", "?", "[")))
    assert not is_pattern("{a,b}")


@given(st.text("ab*?[]!-", min_size=1, max_size=6), st.text("ab-", min_size=1, max_size=3))
def test_simple_patterns_match_as_those_of_the_shell(pattern: str, name: str) -> None:
    """Python's own glob agrees wherever its rules are the same."""
    assert matches_path(pattern, name) == fnmatchcase(name, pattern)
