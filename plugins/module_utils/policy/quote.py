# SPDX-License-Identifier: BSD-2-Clause
"""Name in a message what somebody wrote: on one line, printable, and never the length of a file."""

from __future__ import annotations

import reprlib

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80


def quote(value: object) -> str:
    """Return a value as Python writes it, its middle left out where it is long."""
    return _REPR.repr(value)


def clean(text: str) -> str:
    """Return a text without what would steer a terminal; line ends and tabs stay."""
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
