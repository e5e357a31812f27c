# SPDX-License-Identifier: BSD-2-Clause
"""Read an expression of a page's template, as Jinja understands it: names, filters, operators.

A filter binds to the value before it alone, and ``~`` stronger than ``+``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    Values = dict[str, Any]
    Expression = Callable[[Values], Any]

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign>==|!=|<=|>=|//|[-+*/%~|.,:()\[\]<>]))"
)
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"}
_LETTERS = {"\\n": "\n", "\\t": "\t", "\\'": "'", '\\"': '"', "\\\\": "\\"}
_METHODS = ("items", "keys", "values")
_CONSTANTS = {"true": True, "false": False, "none": None, "True": True, "False": False}
_END = ("end", "")


class Safe(str):
    """A text that is markup."""


def escape(value: object) -> str:
    """Return a value as markup."""
    if isinstance(value, Safe):
        return value
    return re.sub("[&<>\"']", lambda one: _ESCAPES[one[0]], str(value))


_FILTERS: Mapping[str, Callable[..., Any]] = {
    "count": len,
    "default": lambda value, other="": other if value is None else value,
    "e": lambda value: Safe(escape(value)),
    "first": lambda value: next(iter(value)),
    "int": int,
    "join": lambda value, between="": between.join(map(str, value)),
    "last": lambda value: list(value)[-1],
    "length": len,
    "list": list,
    "lower": lambda value: str(value).lower(),
    "replace": lambda value, old, new: str(value).replace(old, new),
    "safe": Safe,
    "sort": sorted,
    "string": str,
    "sum": sum,
    "title": lambda value: str(value).title(),
    "trim": lambda value: str(value).strip(),
    "upper": lambda value: str(value).upper(),
}
_COMPARES: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TESTS: Mapping[str, Callable[..., Any]] = {
    "match": lambda value, pattern: bool(re.match(pattern, str(value))),
    "none": lambda value: value is None,
    "search": lambda value, pattern: bool(re.search(pattern, str(value))),
}


def _concatenate(left: object, right: object) -> str:
    if isinstance(left, Safe) or isinstance(right, Safe):
        return Safe(escape(left) + escape(right))
    return f"{left}{right}"


_LEVELS: tuple[Mapping[str, Callable[[Any, Any], Any]], ...] = (
    {"+": operator.add, "-": operator.sub},
    {"~": _concatenate},
    {"*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod},
)


class Reader:
    """Reads one expression after another out of a statement.

    :raises ValueError: By each of its methods, if something else stands there.
    """

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokenize(text))
        self._at = 0

    def read_whole(self) -> Expression:
        """Return the expression that the text is."""
        found = self.read()
        if self.peek() != _END:
            raise ValueError(f"{self.peek()[1]!r} stands behind an expression")
        return found

    def peek(self) -> tuple[str, str]:
        return self._tokens[self._at]

    def take(self, *wanted: str) -> str:
        """Take the next word or sign if it is one of those; return it, or nothing."""
        kind, text = self.peek()
        if kind in ("name", "sign") and text in wanted:
            self._at += 1
            return text
        return ""

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            raise ValueError(f"{wanted!r} is missing before {self.peek()[1]!r}")

    def read_name(self) -> str:
        kind, text = self.peek()
        if kind != "name":
            raise ValueError(f"a name is missing before {text!r}")
        self._at += 1
        return text

    def read(self) -> Expression:
        """Return a value; what ``if`` leaves out is an empty text."""
        body = self.read_or()
        while self.take("if"):
            test = self.read_or()
            other: Expression = self.read() if self.take("else") else lambda _values: ""
            body = partial(_choose, test, body, other)
        return body

    def read_or(self) -> Expression:
        left = self._read_and()
        while self.take("or"):
            left = partial(_either, left, self._read_and())
        return left

    def _read_and(self) -> Expression:
        left = self._read_not()
        while self.take("and"):
            left = partial(_both, left, self._read_not())
        return left

    def _read_not(self) -> Expression:
        if self.take("not"):
            return partial(_call, operator.not_, [self._read_not()])
        left = self._read_level(0)
        sign = self.take(*_COMPARES)
        if sign:
            return partial(_call, _COMPARES[sign], [left, self._read_level(0)])
        if self.take("is"):
            return self._read_test(left)
        if self.take("in"):
            return partial(_call, _is_among, [left, self._read_level(0)])
        if self.take("not"):
            self.expect("in")
            inside = partial(_call, _is_among, [left, self._read_level(0)])
            return partial(_call, operator.not_, [inside])
        return left

    def _read_level(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._read_unary()
        left = self._read_level(level + 1)
        while True:
            sign = self.take(*_LEVELS[level])
            if not sign:
                return left
            left = partial(_call, _LEVELS[level][sign], [left, self._read_level(level + 1)])

    def _read_unary(self) -> Expression:
        if self.take("-"):
            return partial(_call, operator.neg, [self._read_unary()])
        value = self._read_value()
        while True:
            sign = self.take(".", "[", "(", "|")
            if not sign:
                return value
            value = self._read_after(sign, value)

    def _read_after(self, sign: str, value: Expression) -> Expression:
        """Return what a value becomes by a part of it, a call or a filter."""
        if sign == ".":
            name = self.read_name()
            if name in _METHODS and self.take("("):
                self.expect(")")
                return partial(_call, operator.methodcaller(name), [value])
            return partial(_call, operator.itemgetter(name), [value])
        if sign == "[":
            return partial(_call, operator.getitem, [value, self._read_index()])
        if sign == "(":
            return partial(_apply, value, self._read_list(")"))
        name = self.read_name()
        if name not in _FILTERS:
            raise ValueError(f"{name!r} is not a filter; accepted are {', '.join(_FILTERS)}")
        words = self._read_list(")") if self.take("(") else []
        return partial(_call, _FILTERS[name], [value, *words])

    def _read_index(self) -> Expression:
        """Return what stands in brackets: ``1``, ``'a'`` or ``:10``."""
        nothing: Expression = lambda _values: None  # noqa: E731 - it stands for an end
        first = nothing if self.peek()[1] == ":" else self.read()
        if self.take("]"):
            return first
        self.expect(":")
        last = nothing if self.peek()[1] == "]" else self.read()
        self.expect("]")
        return partial(_call, slice, [first, last])

    def _read_test(self, value: Expression) -> Expression:
        """Return what stands behind ``is``."""
        turns = bool(self.take("not"))
        name = self.read_name()
        if name not in _TESTS:
            raise ValueError(f"{name!r} is not a test; accepted are {', '.join(_TESTS)}")
        words = self._read_list(")") if self.take("(") else []
        test = partial(_call, _TESTS[name], [value, *words])
        return partial(_call, operator.not_, [test]) if turns else test

    def _read_value(self) -> Expression:
        kind, text = self.peek()
        self._at += 1
        if kind == "text":
            plain = re.sub(r"\\.", lambda one: _LETTERS.get(one[0], one[0]), text[1:-1])
            return lambda _values: plain
        if kind == "number":
            number = float(text) if "." in text else int(text)
            return lambda _values: number
        if kind == "name":
            return partial(_look_up, text)
        if text in ("(", "["):
            return self._read_group(")" if text == "(" else "]")
        raise ValueError(f"a value is missing before {text!r}")

    def _read_group(self, end: str) -> Expression:
        """Return a list, or what stands alone in parentheses."""
        if self.take(end):
            return partial(_gather, [])
        first = self.read()
        if end == ")" and self.take(")"):
            return first
        if not self.take(","):
            self.expect(end)
            return partial(_gather, [first])
        return partial(_gather, [first, *self._read_list(end)])

    def _read_list(self, end: str) -> list[Expression]:
        found: list[Expression] = []
        while not self.take(end):
            found.append(self.read())
            if not self.take(","):
                self.expect(end)
                break
        return found


def _tokenize(text: str) -> list[tuple[str, str]]:
    found, at, text = [], 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:].strip()!r} is not known here")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return [*found, _END]


def _look_up(name: str, values: Values) -> Any:
    if name in values:
        return values[name]
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    raise ValueError(f"{name!r} is not there")


def _call(function: Callable[..., Any], words: list[Expression], values: Values) -> Any:
    return function(*(word(values) for word in words))


def _apply(function: Expression, words: list[Expression], values: Values) -> Any:
    return function(values)(*(word(values) for word in words))


def _gather(parts: list[Expression], values: Values) -> Any:
    return [part(values) for part in parts]


def _choose(test: Expression, body: Expression, other: Expression, values: Values) -> Any:
    return body(values) if test(values) else other(values)


def _either(left: Expression, right: Expression, values: Values) -> Any:
    return left(values) or right(values)


def _both(left: Expression, right: Expression, values: Values) -> Any:
    return left(values) and right(values)


def _is_among(value: object, among: Any) -> bool:
    return value in among
