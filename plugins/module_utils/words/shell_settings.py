# SPDX-License-Identifier: BSD-2-Clause
"""Tell what a command of a shell sets, and whether it does so only under a condition; sh(1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .shell_variables import LONGEST, expand

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_COUNTED = re.compile(r"(\+\+|--)?([A-Za-z_]\w*)\s*(?:([-+*/%]?)=\s*(.+)|(\+\+|--)|)", re.DOTALL)
_SUM = re.compile(r"\(\((.*?)\)*", re.DOTALL)
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?=([^{}]*)\}")
_DECLARES = ("export", "local", "readonly", "declare", "typeset")
_BEFORE = ("do", "then", "else", "{", "!")
_READS = ("read", "mapfile", "readarray", "getopts")
_SETS_UP = re.compile(
    r"cd|pushd|popd|mkdir|source|\.|export|module|conda|mamba|set|ulimit|pip|echo|printf|eval|ml"
    "|spack|rm|cp|mv|ln|touch|hash|date|hostname|true|:|local|declare|readonly|unset"
)
"""What is followed by ``&&`` without choosing between two ways."""
_NUMBER = re.compile("[0-9]{1,18}")


def find_settings(words: Sequence[str], variables: Mapping[str, str]) -> Mapping[str, str | None]:
    """Return what a command sets, if it does nothing else; of a loop, its largest number.

    Of a variable that is unset the value is ``None``.
    """
    name = words[0] if words else ""
    if name == "for" and words[2:3] == ["in"] and len(words) > 3:
        counts = all(re.fullmatch("[0-9]{1,9}", word) for word in words[3:])
        return {words[1]: max(words[3:], key=int) if counts else words[3]}
    if name == "unset":
        return {word: None for word in words[1:] if not word.startswith("-")}
    if name in _READS:
        # Of what is read nothing is known, and no default counts in its place.
        return {word: f"${{{word}}}" for word in words[1:] if re.fullmatch(r"[A-Z_]\w*", word)}
    if name == "printf" and words[1:2] == ["-v"] and len(words) > 2:
        return {words[2]: f"${{{words[2]}}}"}
    if name == "let":
        return dict(_count(words[1:], variables))
    summed = _SUM.fullmatch(" ".join(words))
    return dict(_count([summed[1]], variables)) if summed else _find_assigned(words, variables)


def _count(texts: Sequence[str], variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what sums assign: ``W*=2``, ``N=W+1``, ``N++``."""
    for match in map(_COUNTED.fullmatch, (text.strip() for text in texts)):
        before, name, sign, other, after = match.groups() if match else ("", "", "", "", "")
        step = before or after
        if step or other:
            text = f"{name}{step[0]}1" if step else f"{name}{sign}({other})" if sign else other
            yield name, expand(f"$(({text}))", variables)


def _find_assigned(words: Sequence[str], variables: Mapping[str, str]) -> dict[str, str]:
    if words and words[0] in _DECLARES:
        words = [word for word in words[1:] if not word.startswith("-")]
    pairs = [_ASSIGNED.fullmatch(word) for word in words]
    found = [pair for pair in pairs if pair]
    if len(found) < len(pairs):
        return {}
    return {
        pair[1]: (variables.get(pair[1], "") * bool(pair[2]) + flatten(pair[3]))[:LONGEST]
        for pair in found
    }


def find_defaults(text: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return what ``${W:=4}`` sets in a line: what had no value."""
    found = _DEFAULT.findall(text)
    return {name: expand(value, variables) for name, value in found if name not in variables}


def flatten(text: str) -> str:
    """Return a text in one line, as it comes of a variable without quotes around it."""
    return text.replace("\\\n", " ").replace("\n", " ")


class Conditions:
    """Which commands of a script are run only under a condition."""

    def __init__(self) -> None:
        self._depth = 0
        self._cases = 0
        self._is_tested = self._tests = False

    def open(self, words: Sequence[str]) -> list[str]:
        """Take the next command, and return it without the pattern of a ``case`` before it."""
        words = list(words)
        while words and words[0] in _BEFORE:
            words = words[1:]
        if words[:1] == ["case"] and "in" in words:
            self._cases += 1
            words = words[words.index("in") + 1 :]
        elif words[:1] == ["if"]:
            self._depth += 1
        elif words[:1] in (["fi"], ["esac"]):
            self._depth -= words[0] == "fi"
            self._cases -= words[0] == "esac"
        first = words[0] if words else ":"
        self._tests = not _SETS_UP.fullmatch(first) and not _ASSIGNED.fullmatch(first)
        is_arm = self._cases > 0 and words and words[0].endswith(")") and "(" not in words[0]
        return words[1:] if is_arm else words

    def close(self, ended: str) -> None:
        """Mind what ends the command: a test counts for what is chained to it."""
        self._is_tested = (self._is_tested or self._tests) and ended in ("&&", "||")

    @property
    def is_sure(self) -> bool:
        """Whether what is read now is run in any case."""
        return self._depth <= 0 and self._cases <= 0 and not self._is_tested

    def choose(self, name: str, old: str | None, new: str | None) -> tuple[str | None, str]:
        """Return the value of a variable that has another one already, and what to say of it.

        Under a condition either may be; of two numbers the larger counts.
        """
        if not self.is_sure and old is None and new is not None and "$" in new:
            return None, f"{name} may be {new[:60]}, by a condition: what it is otherwise counts"
        if self.is_sure or old is None or old == new or name.isdecimal():
            return new, ""
        if new is None:
            return old, ""
        larger = new
        if _NUMBER.fullmatch(old):
            larger = max(old, new, key=int) if _NUMBER.fullmatch(new) else old
        return larger, f"{name} is {old[:60]} or {new[:60]}, by a condition: {larger[:60]} counts"
