# SPDX-License-Identifier: BSD-2-Clause
"""Build a policy from what stands in a file, and refuse what would be lost or has no end.

A reader of JSON or of YAML yields :class:`Event`; what they amount to is the same for both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count, takewhile
from typing import NoReturn

from .policy_shape import DEEPEST, LONGEST_NUMBER, MOST_VALUES, find_unfit, join_path
from .reader import PolicyError
from .values import NamedTuple

_MOST_TOLD = 100
_MARK = "\ufeff"
MAPPING, LIST, CLOSE, SCALAR, MERGE = "{", "[", "]", ".", "<<"


class Event(NamedTuple):
    """One step of a text: a mapping or a list opens, closes, or a scalar stands there.

    ``text`` is a scalar as it is written, which is what a key is; ``MERGE`` is the key ``<<`` of
    YAML, a scalar too.
    """

    kind: str
    line: int
    value: object = None
    text: str = ""


class Tree(NamedTuple):
    """What a file holds, and the problems that its values no longer show."""

    root: object
    problems: tuple[str, ...] = ()


class Located(NamedTuple):
    """A scalar and its line, for who tells where each value stands."""

    value: object
    line: int


def locate(event: Event) -> Event:
    """Return a step that keeps the line of its scalar; keys are the same."""
    if event.kind != SCALAR:
        return event
    return event._replace(value=Located(event.value, event.line))


class _Source(NamedTuple):
    """What is read: the steps, the file's name, and where its problems go."""

    events: Iterator[Event]
    path: str
    problems: list[str]


def build_tree(events: Iterable[Event], path: str) -> Tree:
    """Return what the steps of one text amount to; a key that is stated twice is a problem.

    :param path: The file's name, for messages.
    :raises PolicyError: If it is nested too deeply or holds too many values.
    """
    source = _Source(_bound(events, path), path, [])
    root = _build(source, next(source.events, Event(SCALAR, 1)), "", 0)
    list(source.events)  # The reader refuses what stands behind the end.
    return Tree(root, tuple(source.problems))


def _bound(events: Iterable[Event], path: str) -> Iterator[Event]:
    for number, event in zip(count(), events):
        if number == MOST_VALUES:
            refuse(path, event.line, f"holds more than {MOST_VALUES} values")
        yield event


def _build(source: _Source, event: Event, path: str, depth: int) -> object:
    if event.kind not in (MAPPING, LIST):
        return event.value
    if depth == DEEPEST:
        refuse(source.path, event.line, f"is nested deeper than {DEEPEST} levels")
    within = takewhile(lambda one: one.kind != CLOSE, source.events)
    if event.kind == MAPPING:
        return _build_mapping(source, within, path, depth + 1)
    return [_build(source, one, f"{path}[{index}]", depth + 1) for index, one in enumerate(within)]


def _build_mapping(
    source: _Source, keys: Iterator[Event], path: str, depth: int
) -> dict[str, object]:
    mapping: dict[str, object] = {}
    merged: list[object] = []
    lines: dict[str, int] = {}
    for key in keys:
        here = join_path(path, key.text)
        if key.kind in (MAPPING, LIST):
            refuse(source.path, key.line, f"{path or 'policy'}: has a key that is not a text")
        first = lines.setdefault(key.text, key.line)
        if key.text in mapping or (key.kind == MERGE and merged):
            _tell_second(source, here, key.line, first)
        value = _build(source, next(source.events), here, depth)
        if key.kind == MERGE:
            merged += value if isinstance(value, list) else [value]
        else:
            mapping[key.text] = value
    _merge(mapping, merged, source.path, path)
    return mapping


def _tell_second(source: _Source, path: str, line: int, first: int) -> None:
    if len(source.problems) < _MOST_TOLD:
        source.problems.append(
            f"{source.path}:{line}: {path} is stated a second time; the first is in line {first}"
        )


def _merge(mapping: dict[str, object], merged: list[object], file: str, path: str) -> None:
    """Add what ``<<`` names: a key of the mapping's own wins, then the first of several."""
    for one in merged:
        if not isinstance(one, dict):
            raise PolicyError([f"{file}: {join_path(path, MERGE)}: a mapping is accepted"])
        for key, value in one.items():
            mapping.setdefault(key, value)


def refuse(path: str, line: int, what: str) -> NoReturn:
    """Refuse a file for what stands in a line."""
    raise PolicyError([f"{path}:{line}: {what}"])


def decode_policy(content: bytes, path: str) -> str:
    """Return the text of a policy's file.

    :raises PolicyError: If it is empty or not plain UTF-8.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as exc:
        seen = f"0x{content[exc.start]:02x}"
        refuse(path, content.count(b"\n", 0, exc.start) + 1, f"{seen} is not UTF-8 there")
    if text.startswith(_MARK):
        refuse(path, 1, "begins with a byte order mark; save it without")
    unfit = find_unfit(text)
    if unfit:
        at = text.index(unfit)
        refuse(path, text.count("\n", 0, at) + 1, f"holds the character U+{ord(unfit):04X}")
    if not text.strip():
        raise PolicyError([f"{path}: is empty, so nothing would be required"])
    return text


def read_number(text: str, path: str, line: int) -> int | float:
    """Read a number of a bounded length: int() takes the square of that before Python 3.12.

    :raises PolicyError: If it is longer.
    """
    if len(text) > LONGEST_NUMBER:
        refuse(
            path, line, f"a number has {len(text)} digits; at most {LONGEST_NUMBER} are accepted"
        )
    return int(text) if text.lstrip("+-").isdigit() else float(text)


_WORD = re.compile(r'[{}\[\]]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s,:"{}\[\]]+')
_KINDS = {"{": MAPPING, "[": LIST, "}": CLOSE, "]": CLOSE}


def parse_json(text: str, path: str, keep: Callable[[Event], Event] | None = None) -> Tree:
    """Return what a text of JSON holds.

    :param path: The file's name, for messages.
    :param keep: What becomes of each step, such as :func:`locate`.
    :raises PolicyError: If it is too deep or too long, or holds a number without an end.
    :raises ValueError: If it is not JSON.
    """
    try:
        json.loads(text, parse_int=len, parse_float=len, parse_constant=_refuse_constant)
    except RecursionError:
        raise PolicyError([f"{path}: is nested deeper than {DEEPEST} levels"]) from None
    events = _read_words(text, path)
    return build_tree(map(keep, events) if keep else events, path)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _read_words(text: str, path: str) -> Iterator[Event]:
    """Yield the steps of a text that is JSON."""
    line, last = 1, 0
    for word in _WORD.finditer(text):
        line += text.count("\n", last, word.start())
        last = word.start()
        if word[0] in _KINDS:
            yield Event(_KINDS[word[0]], line)
        else:
            value = _read_scalar(word[0], path, line)
            yield Event(SCALAR, line, value, str(value))


def _read_scalar(word: str, path: str, line: int) -> object:
    if word[0] == "-" or word[0].isdigit():
        return read_number(word, path, line)
    value: object = json.loads(word)
    return value
