# SPDX-License-Identifier: BSD-2-Clause
"""Fill in a page's template without Jinja, in that part of its language that the page uses.

Statements are ``for``, ``if``, ``elif``, ``else``, ``set`` and ``macro``. Every value is escaped
unless the filter ``safe`` says that it is markup. A line break behind a statement and blanks before
one are left out, as Jinja does with ``trim_blocks`` and ``lstrip_blocks``. A name that is not there
is an error and never an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from .audit_expressions import Reader, Safe, escape
from .core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .audit_expressions import Expression, Values

    Part = Callable[[Values], Iterable[str]]

_TAG = re.compile(
    r"\{%(?P<eats>-?)\s*(?P<statement>.*?)\s*(?P<eats_more>-?)%\}"
    r"|\{\{\s*(?P<value>.*?)\s*\}\}|\{#.*?#\}",
    re.DOTALL,
)
_FOR = re.compile(r"for\s+([\w\s,]+?)\s+in\s+(.*)", re.DOTALL)
_MACRO = re.compile(r"macro\s+(\w+)\s*\(([\w\s,]*)\)")
_SET = re.compile(r"set\s+(\w+)\s*=\s*(.*)", re.DOTALL)


def fill_template(text: str, name: str, values: Mapping[str, Any]) -> str:
    """Return a template with its values.

    :param name: Of the template, for what is wrong with it.
    :raises ValueError: If it says something that is not known here, with its line.
    """
    parts = _Reader(text, name).read_until()
    inside = dict(values)  # What is set at the top stays known below.
    return "".join(piece for part in parts for piece in part(inside))


class _Tag(NamedTuple):
    """A piece of a template: ``kind`` is ``text``, ``value`` or the first word of a statement."""

    kind: str
    text: str
    line: int


def _split(text: str) -> Iterator[_Tag]:
    """Yield the pieces of a template, without comments and the blanks round statements."""
    at, trims, eats = 0, False, False
    for found in _TAG.finditer(text):
        is_value = found["value"] is not None
        piece = text[at : found.start()]
        if not is_value:
            piece = re.sub(r"(?<=\n)[ \t]+\Z" if at else r"(?:\A|(?<=\n))[ \t]+\Z", "", piece)
        piece = piece[1:] if trims and piece.startswith("\n") else piece
        piece = piece.lstrip() if eats else piece
        yield _Tag("text", piece.rstrip() if found["eats"] else piece, 0)
        line = text.count("\n", 0, found.start()) + 1
        if is_value:
            yield _Tag("value", found["value"], line)
        elif found["statement"] is not None:
            yield _Tag(found["statement"].partition(" ")[0], found["statement"], line)
        at, trims, eats = found.end(), not is_value, bool(found["eats_more"])
    rest = text[at:]
    rest = rest[1:] if trims and rest.startswith("\n") else rest
    rest = rest.lstrip() if eats else rest
    yield _Tag("text", rest[:-1] if rest.endswith("\n") else rest, 0)


class _Reader:
    """Reads the pieces of one template into functions that yield what they stand for."""

    def __init__(self, text: str, name: str) -> None:
        self._tags, self._name = _split(text), name
        self._tag = _Tag("text", "", 1)

    def read_until(self, *ends: str) -> list[Part]:
        """Return what stands before one of some statements, or before the end; that is taken."""
        parts: list[Part] = []
        for tag in self._tags:
            kind, text = tag.kind, tag.text
            self._tag = self._tag if kind == "text" else tag
            if kind in ends:
                return parts
            if kind.startswith(("end", "el")):
                told = f"stands where {ends[-1]} is missing" if ends else "ends nothing"
                raise self._refuse(f"{kind!r} {told}")
            if kind == "text":
                parts.append(partial(_yield_text, text))
            elif kind == "value":
                parts.append(partial(_yield_value, self._parse(Reader.read_whole, text)))
            else:
                parts.append(self._read_statement(kind, text))
        if ends:
            raise self._refuse(f"{ends[-1]!r} is missing at the end")
        return parts

    def _read_statement(self, kind: str, text: str) -> Part:
        if kind == "if":
            return self._read_if(text[2:])
        loop, given, macro = (one.fullmatch(text) for one in (_FOR, _SET, _MACRO))
        if loop:
            names = re.findall(r"\w+", loop[1])
            inner, test = self._parse(_read_loop, loop[2])
            return partial(_loop, names, inner, test, self.read_until("endfor"))
        if given:
            return partial(_assign, given[1], self._parse(Reader.read_whole, given[2]))
        if macro:
            words = re.findall(r"\w+", macro[2])
            return partial(_define, macro[1], words, self.read_until("endmacro"))
        raise self._refuse(f"{text!r} is not known; accepted are for, if, set and macro")

    def _read_if(self, condition: str) -> Part:
        ways: list[tuple[Expression, list[Part]]] = []
        test = self._parse(Reader.read_whole, condition)
        while True:
            ways.append((test, self.read_until("elif", "else", "endif")))
            if self._tag.kind == "endif":
                return partial(_choose, ways)
            told = self._tag.text[4:] if self._tag.kind == "elif" else "true"
            test = self._parse(Reader.read_whole, told)

    def _parse(self, read: Callable[[Reader], Any], text: str) -> Any:
        """Return what is read of an expression.

        :raises ValueError: If it cannot be read, with its line.
        """
        try:
            return read(Reader(text))
        except ValueError as exc:
            raise self._refuse(str(exc)) from None

    def _refuse(self, text: str) -> ValueError:
        return ValueError(f"{self._name}:{self._tag.line}: {text}")


def _read_loop(reader: Reader) -> tuple[Expression, Expression | None]:
    """Return what a loop goes through, and which of it is meant."""
    inner = reader.read_or()
    test = reader.read_or() if reader.take("if") else None
    if reader.peek()[0] != "end":
        raise ValueError(f"{reader.peek()[1]!r} stands behind what a loop goes through")
    return inner, test


def _yield_text(text: str, _values: Values) -> Iterable[str]:
    return (text,)


def _yield_value(inner: Expression, values: Values) -> Iterable[str]:
    return (escape(inner(values)),)


def _assign(name: str, inner: Expression, values: Values) -> Iterable[str]:
    values[name] = inner(values)
    return ()


def _choose(ways: Sequence[tuple[Expression, list[Part]]], values: Values) -> Iterator[str]:
    for test, parts in ways:
        if test(values):
            for part in parts:
                yield from part(values)
            return


def _define(
    name: str, words: Sequence[str], parts: Sequence[Part], values: Values
) -> Iterable[str]:
    def call(*given: object) -> Safe:
        inside = {**values, **dict(zip(words, given))}
        return Safe("".join(piece for part in parts for piece in part(inside)))

    values[name] = call
    return ()


def _loop(
    names: Sequence[str],
    inner: Expression,
    test: Expression | None,
    parts: Sequence[Part],
    values: Values,
) -> Iterator[str]:
    told = (dict(zip(names, one)) if len(names) > 1 else {names[0]: one} for one in inner(values))
    items = [one for one in told if test is None or test({**values, **one})]
    for index, item in enumerate(items):
        place = {"index0": index, "index": index + 1, "length": len(items)}
        place.update(first=index == 0, last=index == len(items) - 1)
        inside = {**values, **item, "loop": place}
        for part in parts:
            yield from part(inside)
