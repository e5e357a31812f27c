# SPDX-License-Identifier: BSD-2-Clause
"""Put the body of a function of a script where it is called, with the arguments of the call; sh(1).

So are those whose every call is a line of its own; of the others the body is read where it stands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from ..core.values import NamedTuple
from .script_lines import MOST_LINES, Line

_BEGINS = re.compile(
    r"\s*(?:function\s+([\w-]+)\s*(?:\(\))?|([A-Za-z_][\w-]*)\s*\(\))\s*(\{.*)?", re.DOTALL
)
_PLACE = re.compile(r"\$(?:\{(\d)(?::?[-=]([^{}]*))?\}|(\d)|([@*#])|\{([@*#])\})")
_ALL = re.compile('"(\\$(?:@|\\{@\\}))"')
_SHIFT = re.compile(r"(?:.*[;\s])?shift\s*(\d?)\s*", re.DOTALL)
_PASSES = 40
END = "end-of-function"
"""Stands for a command behind what is put in: what was local ends with it."""
_ANY_CALL = re.compile(r"^\s*(?:eval\b|\"?\$(?:@|\{@\}|\*))|\beval\b")
"""What may call any function."""


class _Function(NamedTuple):
    """A function: its name, its lines, and where its definition begins and ends."""

    name: str
    body: tuple[Line, ...]
    first: int
    end: int


def inline(lines: Sequence[Line], is_sourced: bool = False) -> list[Line]:
    """Return the lines of a script with such calls replaced, and what is never called left out.

    :param is_sourced: Whether what another script calls may be in it.
    """
    lines = list(lines)
    for _pass in range(_PASSES):
        if is_sourced or any(_ANY_CALL.search(line.text) for line in lines):
            kept = [one for one in _find(lines) if _list_calls(one, lines)]
        else:
            kept = list(_find(lines))
        function = next((one for one in kept if _is_plain(one, lines)), None)
        if function is None:
            break
        lines = list(_replace(function, lines))[:MOST_LINES]
    return lines


def _find(lines: Sequence[Line]) -> Iterator[_Function]:
    at = 0
    while at < len(lines):
        begins = _BEGINS.fullmatch(lines[at].text)
        at += 1
        if not begins:
            continue
        first, rest = at - 1, (begins[3] or "").strip()
        name = begins[1] or begins[2]
        if rest.endswith("}"):
            text = rest[1:-1].strip().rstrip(";")
            yield _Function(name, (lines[first]._replace(text=text),), first, at)
            continue
        if not rest and at < len(lines) and lines[at].text.strip() == "{":
            at += 1
        start = at
        ends = (one for one in range(at, len(lines)) if lines[one].text.strip() == "}")
        at = next(ends, len(lines)) + 1
        yield _Function(name, tuple(lines[start : at - 1]), first, min(at, len(lines)))


def _is_plain(function: _Function, lines: Sequence[Line]) -> bool:
    """Tell whether a function is called on lines of its own alone; traps are left out."""
    calls = _list_calls(function, lines)
    others = (one for one in calls if not one.text.lstrip().startswith("trap "))
    own = _list_calls(function, function.body, inside=True)
    return not own and all(_split_call(function, one) for one in others)


def _list_calls(function: _Function, lines: Sequence[Line], inside: bool = False) -> list[Line]:
    """Return the lines that name a function, outside of its definition."""
    named = re.compile(rf"(?<![\w./$-]){re.escape(function.name)}(?![\w./-])")
    outside = lines if inside else [*lines[: function.first], *lines[function.end :]]
    return [one for one in outside if function.name in one.text and named.search(one.text)]


def _split_call(function: _Function, line: Line) -> tuple[list[str], bool] | None:
    """Return the arguments of a call, and whether it goes on behind ``&``."""
    match = re.fullmatch(
        rf"\s*{re.escape(function.name)}((?:\s+[^\s;|&<>]+)*)\s*([0-9]?>[^;|]*?|\|[^;&|]*)?\s*(&?)",
        line.text.strip(),
        re.DOTALL,
    )
    if not match or "&&" in line.text:
        return None
    try:
        return shlex.split(match[1]), bool(match[3])
    except ValueError:
        return None


def _replace(function: _Function, lines: Sequence[Line]) -> Iterator[Line]:
    for at, line in enumerate(lines):
        if function.first <= at < function.end:
            continue
        call = _split_call(function, line)
        if call is None:
            yield line
            continue
        given, goes_on = call
        if goes_on:
            yield line._replace(text="{", body="")
        for one in function.body:
            yield one._replace(text=_fill(one.text, given), body=_fill(one.body, given))
            shifts = _SHIFT.fullmatch(one.text)
            given = given[int(shifts[1] or 1) :] if shifts else given
        yield line._replace(text=END, body="")
        if goes_on:
            yield line._replace(text="} &", body="")


def _fill(text: str, given: Sequence[str]) -> str:
    def put(match: re.Match[str]) -> str:
        index, default, plain, sign, braced = match.groups()
        if sign or braced:
            return str(len(given)) if "#" in (sign, braced) else " ".join(given)
        number = int(index or plain)
        if not number:
            return match[0]
        return given[number - 1] if number <= len(given) else default or ""

    return _PLACE.sub(put, _ALL.sub(r"\1", text))
