# SPDX-License-Identifier: BSD-2-Clause
"""Find the lines of shell text that are printed and not run, where the text is plain enough."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .shell_commands import Command

_PRINTERS = "echo|printf|logger"
_MAY_RUN = (
    r"\b(?:eval|exec|alias|function|coproc)\b|`|\$\((?!\()|<\(|(?<!\|)\|(?!\|)|>(?!&\s?[12]\b|\s*/dev/null\b)"
    rf"|\b(?:{_PRINTERS}|cat)\s*[(=]|\bprintf\s+-"
)
"""What may run a text that is printed, or keep it: then a line that prints may set a limit."""
_WORD = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s"'\\;&<>(){}#]"""
_PRINT = rf"\s*(?:{_PRINTERS})\s(?:{_WORD}|\s|>&[12]|>\s*/dev/null)*"
_HERE = r"\s*cat\s+<<(-?)\s*(['\"]?)(\w+)\2\s*(?:>&2\s*)?"


def find_printed(commands: Sequence[Command]) -> frozenset[int]:
    """Return the places, in a list of commands, of those that only print what they hold.

    Such are echo, printf and logger alone on a line, and what a here-document gives to cat; in a
    text that has a pipe, a substitution, eval, or writes a file, nothing is.
    """
    texts = [command.text for command in commands]
    if not any(re.match(_PRINT, text) or re.match(_HERE, text) for text in texts):
        return frozenset()
    if any(re.search(_MAY_RUN, text) for text in texts):
        return frozenset()
    found, end = set(), 0
    for place, text in enumerate(texts):
        here = re.fullmatch(_HERE, text)
        if place < end or re.fullmatch(_PRINT, text):
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
