# SPDX-License-Identifier: BSD-2-Clause
"""Name in a message what somebody wrote: on one line, printable, and never the length of a file."""

from __future__ import annotations

import reprlib

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80
_LONGEST = 1000


def quote(value: object) -> str:
    """Return a value as Python writes it, its middle left out where it is long."""
    return _REPR.repr(value)


def one_line(text: str) -> str:
    """Return a sentence without what would steer a terminal or a log, cut where it is endless."""
    text = clean(text).replace("\n", "?").replace("\t", "?")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def clean(text: str) -> str:
    """Return a text without what would steer a terminal; line ends and tabs stay."""
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
