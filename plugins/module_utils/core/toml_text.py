# SPDX-License-Identifier: BSD-2-Clause
"""Read TOML with the line of every value, for targets whose Python has no tomllib.

Source: the specification of TOML 1.0, and the parser of Podman (github.com/BurntSushi/toml), which
is stricter in nothing that is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from .quote import quote
from .values import NamedTuple

_BLANK = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\n]|\r\n|#[^\n]*)*")
_END = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LONG_BASIC = re.compile(r'"""(?:\r?\n)?((?:[^\\]|\\.)*?)"""(?!")', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(?:\r?\n)?(.*?)'''(?!')", re.DOTALL)
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\n]*)'")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[ \t]*\r?\n\s*|(.))", re.DOTALL)
_SHORT = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_NUMBER = re.compile(
    r"[+-]?(?:inf|nan|0x[0-9A-Fa-f_]+|0o[0-7_]+|0b[01_]+"
    r"|[0-9](?:[0-9_]*[0-9])?(?:\.[0-9_]*[0-9])?(?:[eE][+-]?[0-9]+)?)(?![\w.:-])"
)
_DATE = re.compile(r"[0-9]{2}[0-9:.-]{3,}(?:[Tt ][0-9:.]+)?(?:[Zz]|[+-][0-9:]+)?(?![\w.])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_DEEPEST = 50


class Scalar(NamedTuple):
    """A number, a truth or a date, as written."""

    text: str


class Node(NamedTuple):
    """A value: a text, a scalar, a list of nodes or a mapping of keys to nodes.

    ``line`` is where it begins and ``end`` where it ends, both counted from 1.
    """

    value: object
    line: int
    end: int


class Entry(NamedTuple):
    """A key with its value; ``keys`` lead to it from the top, those of its table first."""

    keys: tuple[str, ...]
    node: Node


class TomlError(ValueError):
    """What is not TOML; ``line`` says where."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_toml(text: str) -> list[Entry]:
    """Return every key of a file in its order; those of a table in an array are left out.

    :raises TomlError: At the first thing that cannot be read.
    """
    control = _CONTROL.search(text)
    if control:
        raise TomlError(_count(text, control.start()), "a control character")
    entries = list(_Reader(text).read())
    return [one for entry in entries for one in _flatten(entry)]


def _flatten(entry: Entry) -> Iterator[Entry]:
    """Yield the entries of an inline table one by one."""
    if not isinstance(entry.node.value, dict):
        yield entry
        return
    for key, node in entry.node.value.items():
        yield from _flatten(Entry((*entry.keys, key), node))


def _count(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _unescape(line: int, match: re.Match[str]) -> str:
    number = match[1] or match[2]
    if number and (int(number, 16) >= 0x110000 or 0xD800 <= int(number, 16) < 0xE000):
        raise TomlError(line, f"no character {match[0]}")
    if number:
        return chr(int(number, 16))
    if match[3] is not None and match[3] not in _SHORT:
        raise TomlError(line, f"no escape {quote(match[0])}")
    return _SHORT.get(match[3] or "", "")


class _Reader:
    """One pass over a text; ``at`` is where it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.counted = (0, 1)

    def count(self, position: int) -> int:
        """Return the line of a position, at or behind the one asked for last."""
        last, line = self.counted
        line += self.text.count("\n", last, position)
        self.counted = (position, line)
        return line

    def read(self) -> Iterator[Entry]:
        table: tuple[str, ...] | None = ()
        headers: set[tuple[str, ...]] = set()
        self._skip(_GAP)
        while self.at < len(self.text):
            if self._take("["):
                table = self._read_header(headers)
            else:
                keys = self._read_keys()
                self._expect("=")
                self._skip(_BLANK)
                node = self._read_value(0)
                if table is not None:
                    yield Entry((*table, *keys), node)
            if not self._skip(_END):
                raise self._fail("more than one thing on a line")
            self._skip(_GAP)

    def _read_header(self, headers: set[tuple[str, ...]]) -> tuple[str, ...] | None:
        """Return the table that begins; nothing for one of an array, which repeats."""
        many = self._take("[")
        keys = self._read_keys()
        self._expect("]]" if many else "]")
        if many:
            return None
        if keys in headers:
            raise self._fail(f"the table {'.'.join(keys)} for the second time")
        headers.add(keys)
        return keys

    def _read_keys(self) -> tuple[str, ...]:
        keys = []
        while True:
            self._skip(_BLANK)
            bare = self._match(_BARE)
            if bare is not None:
                keys.append(bare[0])
            else:
                found = self._read_text(_BASIC, _LITERAL)
                if found is None:
                    raise self._fail("no key")
                keys.append(found)
            self._skip(_BLANK)
            if not self._take("."):
                return tuple(keys)

    def _read_value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self._fail("values too deep in each other")
        line = self.count(self.at)
        value = self._read_plain()
        if value is None:
            if self._take("["):
                value = self._read_array(depth)
            elif self._take("{"):
                value = self._read_inline(depth)
            else:
                raise self._fail("no value")
        return Node(value, line, self.count(self.at))

    def _read_plain(self) -> object:
        text = self._read_text(_LONG_BASIC, _LONG_LITERAL, _BASIC, _LITERAL)
        if text is not None:
            return text
        for word in ("true", "false"):
            if self._take(word):
                return Scalar(word)
        match = self._match(_NUMBER) or self._match(_DATE)
        return Scalar(match[0]) if match else None

    def _read_text(self, *forms: re.Pattern[str]) -> str | None:
        for form in forms:
            start = self.at
            match = self._match(form)
            if match is not None:
                if form in (_BASIC, _LONG_BASIC):
                    line = self.count(start)
                    return _ESCAPE.sub(partial(_unescape, line), match[1])
                return match[1]
        return None

    def _read_array(self, depth: int) -> list[Node]:
        nodes = []
        self._skip(_GAP)
        while not self._take("]"):
            nodes.append(self._read_value(depth + 1))
            self._skip(_GAP)
            if not self._take(","):
                self._expect("]")
                break
            self._skip(_GAP)
        return nodes

    def _read_inline(self, depth: int) -> dict[str, Node]:
        found: dict[str, Node] = {}
        self._skip(_BLANK)
        if self._take("}"):
            return found
        while True:
            keys = self._read_keys()
            self._expect("=")
            self._skip(_BLANK)
            name = ".".join(keys)
            if name in found:
                raise self._fail(f"the key {quote(name)} for the second time")
            found[name] = self._read_value(depth + 1)
            self._skip(_BLANK)
            if not self._take(","):
                self._expect("}")
                return found

    def _match(self, form: re.Pattern[str]) -> re.Match[str] | None:
        match = form.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def _skip(self, form: re.Pattern[str]) -> bool:
        return self._match(form) is not None

    def _take(self, word: str) -> bool:
        found = self.text.startswith(word, self.at)
        if found:
            self.at += len(word)
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._fail(f"{word!r} is missing")

    def _fail(self, message: str) -> TomlError:
        return TomlError(_count(self.text, min(self.at, len(self.text))), message)


def find_key(entries: Sequence[Entry], *keys: str) -> Entry | None:
    """Return the entry of a key; capitals do not count, as in Go.

    :raises TomlError: If it is stated twice, which not every release reads alike, or is a table.
    """
    wanted = tuple(key.lower() for key in keys)
    below = [one for one in entries if _starts(one, wanted)]
    found = [one for one in below if len(one.keys) == len(wanted)]
    inside = [one for one in below if len(one.keys) > len(wanted)]
    if inside:
        raise TomlError(inside[0].node.line, f"{keys[-1]} is a table")
    if len(found) > 1:
        raise TomlError(found[1].node.line, f"{keys[-1]} for the second time")
    return found[0] if found else None


def _starts(entry: Entry, wanted: tuple[str, ...]) -> bool:
    return tuple(key.lower() for key in entry.keys[: len(wanted)]) == wanted
