# SPDX-License-Identifier: BSD-2-Clause
"""Name in a message what somebody wrote: on one line, printable, and never the length of a file."""

from __future__ import annotations

import re
import reprlib

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80
_LONGEST = 1000
_DOUBTFUL = re.compile("[^ -~\n\t]")


def quote(value: object) -> str:
    """Return a value as Python writes it, its middle left out where it is long."""
    return _REPR.repr(value)


def say_error(error: Exception) -> str:
    """Return what an error says: of one of the kernel's, the file and why, without its number."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def one_line(text: str) -> str:
    """Return a sentence without what would steer a terminal or a log, cut where it is endless."""
    text = clean(text).replace("\n", "?").replace("\t", "\\t")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def clean(text: str) -> str:
    """Return a text without what would steer a terminal; line ends and tabs stay."""
    return _DOUBTFUL.sub(lambda one: one[0] if one[0].isprintable() else "?", text)


def clean_all(data: object) -> object:
    """Return plain data with every text in it clean, keys too."""
    if isinstance(data, dict):
        return {clean_all(key): clean_all(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return list(map(clean_all, data))
    return clean(data) if isinstance(data, str) else data


def decode(text: str) -> str:
    """Return the text of a file that was read as latin-1, so that every byte survives."""
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
