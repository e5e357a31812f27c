# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody wrote cannot steer the terminal or the log that a message about it reaches."""

from __future__ import annotations

import pytest
from mlhost_limits.core.quote import clean, one_line, quote


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("a", "'a'"),
        (5, "5"),
        ("\x1b[2J\n", r"'\x1b[2J\n'"),
        (["a"] * 9, "['a', 'a', 'a', 'a', 'a', 'a', ...]"),
    ],
)
def test_a_value_is_quoted_as_python_writes_it(value: object, quoted: str) -> None:
    assert quote(value) == quoted


def test_a_long_value_is_cut() -> None:
    assert len(quote("a" * 10**6)) == 80
    assert quote(10**79)[-3:] == "000"


def test_a_text_keeps_its_lines_and_loses_what_steers() -> None:
    assert clean("a\tb\n\x1b[31mé\u202e\x07") == "a\tb\n?[31mé??"


def test_a_sentence_is_one_line_of_limited_length() -> None:
    assert one_line("a\nb\tc\x1b") == "a?b\\tc?"
    assert one_line("x" * 5000) == "x" * 1000 + "…"
    assert one_line("x" * 1000) == "x" * 1000
    assert one_line("x" * 999 + "\t") == "x" * 999 + "\\…"
