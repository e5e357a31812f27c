# SPDX-License-Identifier: BSD-2-Clause
"""Match the patterns of glob(7) as glob(3) of the C library does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

_MOST_BRACES, _MOST_PATTERNS = 16, 4096
_LONGEST, _LONGEST_PART = 4096, 512  # Characters of a path, and of a pattern of one name in it.

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_ONE = r"\[:[a-z]+:\]|\\.|[^\]\\]"
_PIECE = rf"""\\(?P<char>.) | (?P<any>\*+) | (?P<one>\?)
    | \[(?P<negated>[!^]|(?![!^]))(?P<set>(?:\]|{_ONE})(?:{_ONE})*)\] | (?P<plain>.)"""
_RARE = r"[?\\[]"  # What has a meaning besides the star.
_MEMBER = r"\[:([a-z]+):\]|\\?(.)-\\?(.)|\\?(.)"


def is_pattern(text: str) -> bool:
    """Tell whether a text has one of ``* ? [``."""
    return "*" in text or "?" in text or "[" in text


def matches_path(pattern: str, path: str) -> bool:
    """Match as glob(3): part by part, so that a ``*`` does not reach over a slash."""
    parts, wanted = pattern.split("/"), path.split("/")
    return len(parts) == len(wanted) and all(map(matches_part, parts, wanted))


def matches_part(pattern: str, text: str) -> bool:
    """Match what stands between the stars, each as early as it can, so that none is tried twice."""
    if len(pattern) > _LONGEST_PART:
        return pattern == text
    if not re.search(_RARE, pattern):
        return matches_stars(pattern.split("*"), text)
    (first, width), *later = _compile(pattern)
    if not later:
        return first.fullmatch(text) is not None
    at = width if first.match(text) else len(text) + 1
    for one, _width in later[:-1]:
        found = one.search(text, at)
        at = found.end() if found else len(text) + 1
    last, width = later[-1]
    return at + width <= len(text) and last.match(text, len(text) - width) is not None


def matches_stars(between: list[str], text: str) -> bool:
    """Match as above where only stars are special: a file may hold any number of patterns."""
    first, *later = between
    if not later:
        return first == text
    at = len(first) if text.startswith(first) else len(text) + 1
    for one in later[:-1]:
        found = text.find(one, at)
        at = found + len(one) if found >= 0 else len(text) + 1
    return at + len(later[-1]) <= len(text) and text.endswith(later[-1])


@lru_cache(maxsize=256)
def _compile(pattern: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    """Return what stands between the stars of a pattern, and how many characters it matches."""
    between: list[list[str]] = [[]]
    for piece in re.finditer(_PIECE, pattern, re.VERBOSE | re.DOTALL):
        if piece["any"]:
            between.append([])
        else:
            between[-1].append(_translate(piece))
    return tuple((re.compile("".join(one), re.DOTALL), len(one)) for one in between)


def _translate(piece: re.Match[str]) -> str:
    if piece["one"]:
        return "."
    if piece["set"] is not None:
        members = "".join(map(_translate_member, re.finditer(_MEMBER, piece["set"], re.DOTALL)))
        negated = bool(piece["negated"])
        return f"[{'^' * negated}{members}]" if members else "." if negated else "(?!)"
    return re.escape(piece["char"] or piece["plain"])


def _translate_member(member: re.Match[str]) -> str:
    name, first, last, char = member.groups()
    if name:
        return _CLASSES.get(name, "")
    if char:
        return re.escape(char)
    return f"{re.escape(first)}-{re.escape(last)}" if first <= last else ""


def expand_braces(pattern: str) -> list[str]:
    """Return the patterns that ``{a,b}`` stands for, as glob(3) with ``GLOB_BRACE``.

    Their number doubles with each pair of braces, so what no person writes is cut short: more
    than 16 pairs, or a text longer than a path, stand for themselves, and of the patterns the
    first 4096 are returned.
    """
    if pattern.count("{") > _MOST_BRACES or len(pattern) > _LONGEST:
        return [pattern]
    return list(islice(_expand(pattern), _MOST_PATTERNS))


def _expand(pattern: str) -> Iterator[str]:
    for start, mark in enumerate(pattern):
        end = _find_end(pattern, start) if mark == "{" and pattern[start : start + 2] != "{}" else 0
        if end:
            for choice in _split_choices(pattern[start + 1 : end]):
                for head in _expand(choice):
                    yield from (
                        pattern[:start] + head + tail for tail in _expand(pattern[end + 1 :])
                    )
            return
    yield pattern


def _find_end(pattern: str, start: int) -> int:
    """Return where the brace that opens at *start* closes; 0 where it does not."""
    depth = 0
    for index in range(start, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[index], 0)
        if depth == 0:
            return index
    return 0


def _split_choices(text: str) -> list[str]:
    choices, depth = [""], 0
    for char in text:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            choices.append("")
        else:
            choices[-1] += char
    return choices
