# SPDX-License-Identifier: BSD-2-Clause
"""Find the lines of shell text that are printed and not run, where the text is plain enough."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .shell_commands import Command

_PRINTERS = "echo|printf|logger"
_MAY_RUN = re.compile(
    r"\b(?:eval|exec|alias|function|coproc)\b|`|\$\((?!\()|<\(|(?<!\|)\|(?!\|)|>(?!&\s?[12]\b|\s*/dev/null\b)"
    rf"|\b(?:{_PRINTERS}|cat)\s*[(=]|\bprintf\s+-"
)
"""What may run a text that is printed, or keep it: then a line that prints may set a limit."""
_WORD = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s"'\\;&<>(){}#]"""
_PRINT = re.compile(rf"\s*(?:{_PRINTERS})\s(?:{_WORD}|\s|>&[12]|>\s*/dev/null)*")
_HERE = re.compile(r"\s*cat\s+<<(-?)\s*(['\"]?)(\w+)\2\s*(?:>&2\s*)?")


def find_printed(commands: Sequence[Command]) -> frozenset[int]:
    """Return the places, in a list of commands, of those that only print what they hold.

    Such are echo, printf and logger alone on a line, and what a here-document gives to cat; in a
    text that has a pipe, a substitution, eval, or writes a file, nothing is.
    """
    texts = [command.text for command in commands]
    if not any(_PRINT.match(text) or _HERE.match(text) for text in texts):
        return frozenset()
    if any(_MAY_RUN.search(text) for text in texts):
        return frozenset()
    found, end = set(), 0
    for place, text in enumerate(texts):
        here = _HERE.fullmatch(text)
        if place < end or _PRINT.fullmatch(text):
            found.add(place)
        elif here:
            end = _find_end(texts, place + 1, here[3], bool(here[1]))
    return frozenset(found)


def _find_end(texts: Sequence[str], first: int, mark: str, tabs: bool) -> int:
    """Return the place of the line that ends a here-document; the first where none does."""
    for place in range(first, len(texts)):
        if (texts[place].lstrip("\t") if tabs else texts[place]) == mark:
            return place
    return first
