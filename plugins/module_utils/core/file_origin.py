# SPDX-License-Identifier: BSD-2-Clause
"""Tell from a file's own words who writes it: what is changed by hand there comes back."""

from __future__ import annotations

import re

from .edit import HEADER

_HEAD = 15  # Lines; a generated file says so at its start.
_COMMENT = re.compile(r"\s*(?:#|;|//|--|<!--|/\*)\s*(\S.*)")
_SAYS_WHO = re.compile(
    r"\b(?:managed|generated|created|maintained|written|controlled|deployed|configured|installed)"
    r"\b.{0,60}\b(?:by|with|from|using)\s+\w"
    r"|\bansible[ _]managed\b|\b(?:auto-?generated|system_role:)"
    r"|\bdo not (?:edit|modify|change|touch)\b|\b(?:changes|edits|modifications)\b.{0,60}"
    r"\b(?:lost|overwritten|overridden|discarded)\b",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"\s*#\s*(BEGIN|END)\b.*(MANAGED|managed|cloud-init|puppet)")


def find_header(text: str, line: int = 0) -> str:
    """Return ``line N says "…"`` where a file's head, or a block's mark, names who writes it.

    :param line: The number of a line in the file: marks of a block count where it lies inside.
    """
    rows = text.splitlines()
    start = _find_block(rows, line)
    if start:
        return _cite(start, rows[start - 1])
    if text.startswith(HEADER):
        return ""
    for number, row in enumerate(rows[:_HEAD], start=1):
        comment = _COMMENT.match(row)
        if comment and not _BLOCK.match(row) and _SAYS_WHO.search(comment[1]):
            return _cite(number, row)
    return ""


def _find_block(rows: list[str], line: int) -> int:
    """Return the number of the mark that opens the block around a line; 0 where there is none."""
    start = 0
    for number, row in enumerate(rows[:line], start=1):
        mark = _BLOCK.match(row)
        if mark:
            start = number if mark[1] == "BEGIN" else 0
    return start


def _cite(number: int, row: str) -> str:
    return f'line {number} says "{" ".join(row.split())[:100]}"'
