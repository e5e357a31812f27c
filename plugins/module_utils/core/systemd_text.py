# SPDX-License-Identifier: BSD-2-Clause
"""Split a configuration file into lines, and put in what specifiers stand for, as systemd does."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LINE_END = "(?:\n\r?|\r\n?)\0?|\0"


def split_lines(text: str) -> list[str]:
    """Return the lines without what ends them, the rest after the last end too.

    Source: ``read_line_full()`` in fileio.c.
    """
    if "\r" not in text and "\0" not in text:
        return text.split("\n")
    return re.split(_LINE_END, text)


def expand_name(text: str, unit: str) -> str:
    """Return a text with those specifiers put in that stand for a part of the unit's name.

    Source: systemd.unit(5), "Specifiers".
    """
    name = unit.rpartition(".")[0]
    prefix, _at, instance = name.partition("@")
    parts = {"n": unit, "N": name, "p": prefix, "i": instance, "j": prefix.rpartition("-")[2]}
    return re.sub("%([nNpPiIjJ%])", lambda one: _expand(one[1], parts), text)


def _expand(letter: str, parts: Mapping[str, str]) -> str:
    if letter == "%":
        return letter
    if letter in parts:
        return parts[letter]
    escaped = parts[letter.lower()].replace("-", "/")
    return re.sub(r"\\x([0-9a-f]{2})", lambda one: chr(int(one[1], 16)), escaped)
