# SPDX-License-Identifier: BSD-2-Clause
"""Bound what a policy may be before its keys are read: its depth, its size, its characters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .quote import quote

DEEPEST = 20
"""Levels of mappings and lists; no policy has half of them."""
MOST_VALUES = 100_000
LONGEST_NUMBER = 40
"""Digits."""
_LONGEST_KEY = 256
_LONGEST_TEXT = 2**16
_MOST_TOLD = 100
_UNFIT = (
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udc7f\udd00-\udfff]"
)
"""Controls, what turns or hides text, and half characters. Tabs and line ends are fit, and so are
U+DC80 to U+DCFF, with which Python holds the bytes of a path that is not UTF-8."""


def find_unfit(text: str) -> str:
    """Return the first character of a text that no policy needs, or nothing."""
    if text.isascii() and text.isprintable():
        return ""  # As most are; the pattern takes long to compile.
    match = re.search(_UNFIT, text)
    return match[0] if match else ""


def join_path(path: str, key: object) -> str:
    """Return the path of a key, which may be longer than anybody reads."""
    name = key if isinstance(key, str) and len(key) <= _LONGEST_KEY else quote(key)
    return f"{path}.{name}" if path else name


def find_misshapes(policy: object) -> list[str]:
    """Return what keeps a policy from being read at all, each with its key path.

    What is shared is counted each time it is met, and what contains itself is too deep.
    """
    problems: list[str] = []
    for met, (path, node, depth) in enumerate(_walk(policy), start=1):
        if depth > DEEPEST:
            return [f"{path}: is nested deeper than {DEEPEST} levels"]
        if met > MOST_VALUES:
            return [f"policy: holds more than {MOST_VALUES} values"]
        problems += _judge_keys(path, node) if isinstance(node, dict) else _judge_size(path, node)
    return problems[:_MOST_TOLD]


def find_unfit_texts(policy: object) -> list[str]:
    """Return the keys and texts with a character that no policy needs, each with its key path."""
    problems = []
    for path, node, _depth in _walk(policy):
        keys = [key for key in node if isinstance(key, str)] if isinstance(node, dict) else []
        texts = [(join_path(path or "policy", key), key) for key in keys]
        texts += [(path, node)] if isinstance(node, str) else []
        problems += [
            f"{where}: holds the character U+{ord(find_unfit(text)):04X}"
            for where, text in texts
            if find_unfit(text)
        ]
    return problems[:_MOST_TOLD]


def _walk(policy: object) -> Iterator[tuple[str, object, int]]:
    """Yield every value with its key path and its depth, in the order they are written."""
    waiting: list[tuple[str, object, int]] = [("", policy, 0)]
    while waiting:
        path, node, depth = waiting.pop()
        yield path, node, depth
        below = reversed(list(_list_below(path, node)))
        waiting += [(inner, one, depth + 1) for inner, one in below]


def _list_below(path: str, node: object) -> Iterator[tuple[str, object]]:
    if isinstance(node, dict):
        for key, one in node.items():
            yield join_path(path, key), one
    elif isinstance(node, list):
        for index, one in enumerate(node):
            yield f"{path}[{index}]", one


def _judge_keys(path: str, mapping: dict[object, object]) -> Iterator[str]:
    for key in mapping:
        if isinstance(key, str) and len(key) > _LONGEST_KEY:
            where = path or "policy"
            yield f"{where}: a key has {len(key)} characters; {_LONGEST_KEY} are accepted"


def _judge_size(path: str, value: object) -> Iterator[str]:
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        yield f"{path}: has {len(value)} characters; at most {_LONGEST_TEXT} are accepted"
    elif isinstance(value, int) and abs(value) >= 10**LONGEST_NUMBER:
        yield f"{path}: a number has more than {LONGEST_NUMBER} digits"
    elif isinstance(value, float) and not abs(value) < float("inf"):
        yield f"{path}: {value} is not a number"
