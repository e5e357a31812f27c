# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines are found by the names and the patterns that they state, up to a number that none has."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel import sysctl_index
from mlhost_limits.kernel.sysctl_conf import parse_sysctl_conf
from mlhost_limits.kernel.sysctl_index import Index, Patterns, resolve_path


def index(text: str) -> Index:
    return Index(tuple(parse_sysctl_conf(text, "/x")))


def test_a_pattern_is_found_by_its_spelling() -> None:
    found = index("a.[b] = 1\na.c = 2\na.[b] = 3\n").find_pattern("a/[b]")
    assert found is not None
    assert found.value == "3"
    assert index("a.b = 1\n").find_pattern("a/b") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("a.b = 1", "1"), ("a.b = 1\na.b = 2", None), ("a.b = 1\na.* = 2", None), ("a.c = 1", None)],
)
def test_the_only_line_that_names_a_file(text: str, value: str | None) -> None:
    found = index(text).find_only("a/b")
    assert (found.value if found else None) == value


@pytest.mark.parametrize(
    ("text", "other", "alike"),
    [
        ("a.b = 1", "a.b = 1", True),
        ("", "", True),
        ("a.b = 1", "a.b = 2", False),
        ("a.b = 1\n-a.c", "a.b = 1\n-a.c", False),
        ("a.* = 1", "a.* = 1", False),
        ("a/../b = 1", "a/../b = 1", False),
    ],
)
def test_what_every_reader_makes_the_same_of(text: str, other: str, alike: bool) -> None:
    assert index(text).is_read_like(index(other)) is alike


def test_more_patterns_than_any_host_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysctl_index, "_MOST_PATTERNS", 4)
    assert len(index("a.{b*,c*} = 1\nd.{e*,f*} = 1\n").lines) == 2
    with pytest.raises(ValueError, match=r"^/x:3: is one pattern more"):
        index("a.{b*,c*} = 1\nd.{e*,f*} = 1\ng* = 1\n")


def test_more_comparisons_than_any_host_needs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = Patterns(expands=True)
    for number, line in enumerate(parse_sysctl_conf("a.b* = 1\na.*c = 1\nb.* = 1\n", "/x")):
        patterns.put(number, line)
    monkeypatch.setattr(sysctl_index, "_MOST_TESTS", 6)
    assert patterns.find("a/bc") == [0, 1]  # One for the names of two parts, and two patterns.
    assert patterns.find("a/bc") == [0, 1]
    assert patterns.find("a/d") == []
    assert patterns.find("a/d") == []
    with pytest.raises(ValueError, match="more patterns than can be compared"):
        patterns.find("c/d")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("a/b", "a/b"),
        ("a/b/", "a/b/"),
        ("a//./b/.", "a/b/"),
        ("a/../b", "b"),
        ("a/b/../../c", "c"),
        ("../a/", "a/"),
        ("a/..b", "a/..b"),
    ],
)
def test_the_file_to_which_a_path_leads(name: str, file: str) -> None:
    assert resolve_path(name) == file
