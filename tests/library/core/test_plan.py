# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan holds one edit for each file that differs, byte for byte."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from mlhost_limits.core.edit import Edit
from mlhost_limits.core.plan import Shortfall, neutralise_all, plan_edits, restore_all
from mlhost_limits.core.values import Declaration

FILES = st.dictionaries(st.sampled_from(["/a", "/b"]), st.text(st.characters(max_codepoint=255)))


def test_only_what_differs_is_edited() -> None:
    before = {"/a": "same", "/b": "\xe9", "/c": "", "/d": "gone"}
    after = {"/d": None, "/c": None, "/b": "\xff", "/a": "same", "/e": "", "/f": None}
    assert plan_edits(before, after) == (
        Edit("/b", b"\xe9", b"\xff"),
        Edit("/c", b"", None),
        Edit("/d", b"gone", None),
        Edit("/e", None, b""),
    )


@given(FILES, st.sets(st.tuples(st.sampled_from(["/a", "/b", "/c"]), st.integers(1, 3))))
def test_neutralised_lines_come_back(files: dict[str, str], lines: set[tuple[str, int]]) -> None:
    assume(not any("#mlhost.limits# " in text for text in files.values()))
    silenced = neutralise_all(files, [Declaration(path, line, "", "") for path, line in lines])
    assert restore_all(silenced) == files


def test_a_shortfall_says_whether_it_still_stands() -> None:
    foreign = Declaration("/x", 3, "  * - nofile 5 \r", 5)
    assert (
        str(Shortfall(foreign, "* soft nofile 9", False))
        == '/x:3 "* - nofile 5" beats our "* soft nofile 9"'
    )
    assert (
        str(Shortfall(foreign, "* soft nofile 9", True))
        == '/x:3 "* - nofile 5" was beating our "* soft nofile 9"'
    )
