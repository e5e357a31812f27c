# SPDX-License-Identifier: BSD-2-Clause
"""Edit one member of a JSON object's text and leave every other byte as it is.

The text is walked with the ``json`` module's own scanner, so what is edited is what Python
would parse. Texts come with their line ends as they stand in the file (``newline=""``).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from typing import NoReturn

from .values import NamedTuple

_MARKS = ("\ufeff", "\xef\xbb\xbf")  # A byte order mark, read as UTF-8 and as latin-1.
_BLANK = re.compile(r"[ \t\r\n]*")
_LINE_END = re.compile("\n")
_INDENTS = ("  ", "    ")


class Member(NamedTuple):
    """One ``"key": value`` of an object; the offsets are those of the whole text."""

    key: str
    value: object
    start: int
    value_start: int
    end: int


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _read_float(text: str) -> float:
    """Read a number; one beyond a 64-bit float is refused, as Go's ``encoding/json`` does."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        shown = text if len(text) <= 20 else f"a number of {len(text)} digits"
        raise ValueError(f"{shown} is beyond every number that Go reads")
    return value


def _read_integer(text: str) -> int:
    _read_float(text)
    return int(text)


_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_read_float, parse_int=_read_integer
)


def line_of(text: str, offset: int) -> int:
    """Return the line, from 1, that holds an offset."""
    return bisect_left(_find_line_ends(text), offset) + 1


@lru_cache(maxsize=2)  # Whoever asks for one line of a text asks for that of each member.
def _find_line_ends(text: str) -> list[int]:
    return [match.start() for match in _LINE_END.finditer(text)]


def byte_order_mark(text: str) -> str:
    """Return the mark a text begins with, usually none."""
    return next((mark for mark in _MARKS if text.startswith(mark)), "")


def is_blank(text: str) -> bool:
    """Tell whether a text holds no JSON at all: nothing but white space and a byte order mark."""
    return not text[len(byte_order_mark(text)) :].strip(" \t\r\n")


def find_members(text: str, path: str = "JSON", start: int | None = None) -> list[Member]:
    """Return the members of an object in the order they are written, duplicates included.

    :param path: The file's name, for messages.
    :param start: Where the object stands; by default the text is that object and no more.
    :raises ValueError: ``PATH:LINE:COLUMN: what was expected``.
    """
    try:
        at = _skip(text, len(byte_order_mark(text)) if start is None else start)
        members, end = _walk_object(text, at)
        end = _skip(text, end)
        if start is None and end < len(text):
            raise json.JSONDecodeError("Expecting nothing after the object", text, end)
    except json.JSONDecodeError as error:
        raise ValueError(_place(path, text, error.pos) + error.msg) from None
    except RecursionError:
        raise ValueError(_place(path, text, 0) + "Too many nested values") from None
    return members


def find_items(text: str, start: int) -> list[int]:
    """Return where each item of a list stands; nothing where no list does.

    :raises ValueError: If it is broken.
    """
    found: list[int] = []
    if start < 0 or text[start : start + 1] != "[":
        return found
    at = _skip(text, start + 1)
    while text[at : at + 1] not in ("]", ""):
        found.append(at)
        at = _skip(text, _scan_value(text, at)[1])
        at = _skip(text, at + 1) if text[at : at + 1] == "," else at
    return found


def _place(path: str, text: str, offset: int) -> str:
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    return f"{path}:{line_of(text, offset)}:{column}: "


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _walk_object(text: str, at: int) -> tuple[list[Member], int]:
    at = _expect(text, at, "{", "Expecting an object")
    members: list[Member] = []
    if text[at : at + 1] == "}":
        return members, at + 1
    while True:
        start = at
        _expect(text, at, '"', "Expecting a property name in double quotes")
        key, at = _scan_value(text, at)
        at = _expect(text, _skip(text, at), ":", "Expecting ':'")
        value, end = _scan_value(text, at)
        members.append(Member(str(key), value, start, at, end))
        at = _skip(text, end)
        if text[at : at + 1] == "}":
            return members, at + 1
        at = _expect(text, at, ",", "Expecting ',' or '}'")


def _expect(text: str, at: int, mark: str, message: str) -> int:
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(message, text, at)
    return _skip(text, at + 1)


def _scan_value(text: str, at: int) -> tuple[object, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # NaN, or a number that is too large.
        raise json.JSONDecodeError(str(error), text, at) from None


def find_member(members: Iterable[Member], key: str) -> Member | None:
    """Return the member that counts for a key: the last one, as in Go and in Python."""
    return next((member for member in reversed(list(members)) if member.key == key), None)


def set_member(text: str, key: str, value: object) -> str:
    """Give a member a value, in place, or append it in the file's own layout.

    A blank text becomes an object with a final newline. A mapping of mappings is laid out one
    entry per line where its neighbors stand on lines of their own.
    """
    if is_blank(text):
        text = byte_order_mark(text) + "{}" + _newline(text)
    members = find_members(text)
    member = find_member(members, key)
    if member:
        layout = _lead(text, members, member)
        return text[: member.value_start] + _format(value, layout) + text[member.end :]
    if not members:
        return _fill_object(text, key, value)
    last = members[-1]
    lead = _lead(text, members, last)
    if not lead and len(members) == 1:
        lead = " "
    if "\n" in lead:
        lead = _newline(text) + lead[lead.rindex("\n") + 1 :]
    written = f",{lead}{json.dumps(key)}: {_format(value, lead)}"
    return text[: last.end] + written + text[last.end :]


def _fill_object(text: str, key: str, value: object) -> str:
    """Put the first member in, so that what was between the braces can be told from the result."""
    start = text.index("{") + 1
    end = text.rindex("}")
    inside, newline = text[start:end], _newline(text)
    if inside == "":
        lead, inside = newline + _INDENTS[0], newline
    else:
        lead = newline + _INDENTS[1] if "\n" in inside else inside
    return text[:start] + lead + f"{json.dumps(key)}: {_format(value, lead)}" + inside + text[end:]


def remove_member(text: str, key: str) -> str:
    """Take a member out, every duplicate of it too; nothing changes where there is none.

    The exact inverse of an appending :func:`set_member`, but for a blank text: it becomes ``{}``.
    """
    while True:
        members = find_members(text)
        member = find_member(members, key)
        if member is None:
            return text
        at = members.index(member)
        if at + 1 < len(members):
            text = text[: member.start] + text[members[at + 1].start :]
        elif at:
            text = text[: members[at - 1].end] + text[member.end :]
        else:
            text = _empty_object(text, member)


def replace_member(text: str, key: str, written: str) -> str:
    """Put other text where the member that counts for a key stands, its key included."""
    member = find_member(find_members(text), key)
    return text[: member.start] + written + text[member.end :] if member else text


def _empty_object(text: str, member: Member) -> str:
    start = text.index("{") + 1
    end = text.rindex("}")
    lead, inside, newline = text[start : member.start], text[member.end : end], _newline(text)
    if (lead, inside) == (newline + _INDENTS[0], newline):
        inside = ""
    return text[:start] + inside + text[end:]


def _newline(text: str) -> str:
    """Return the line end of the first line; ``\\n`` where there is none."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _lead(text: str, members: list[Member], member: Member) -> str:
    """Return the white space in front of a member's key."""
    at = members.index(member)
    begin = text.index("{") if at == 0 else text.index(",", members[at - 1].end)
    return text[begin + 1 : member.start]


def _format(value: object, lead: str) -> str:
    """Write a value; *lead* is the white space before its key, one level of indentation deep."""
    nested = isinstance(value, dict) and any(isinstance(entry, dict) for entry in value.values())
    if not nested or "\n" not in lead:
        return json.dumps(value)
    newline, indent = _newline(lead), lead[lead.rindex("\n") + 1 :]
    entries = f",{newline}{indent * 2}".join(
        f"{json.dumps(key)}: {json.dumps(entry)}"
        for key, entry in value.items()  # type: ignore[attr-defined]
    )
    return f"{{{newline}{indent * 2}{entries}{newline}{indent}}}"
