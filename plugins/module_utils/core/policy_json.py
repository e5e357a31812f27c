# SPDX-License-Identifier: BSD-2-Clause
"""Read a policy that is written in JSON; no key may hide another of its name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NoReturn

from .policy_shape import DEEPEST
from .policy_tree import CLOSE, LIST, MAPPING, SCALAR, Event, Tree, build_tree, read_number
from .reader import PolicyError

_WORD = re.compile(r'[{}\[\]]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s,:"{}\[\]]+')
_KINDS = {"{": MAPPING, "[": LIST, "}": CLOSE, "]": CLOSE}


def parse_json(text: str, path: str) -> Tree:
    """Return what a text of JSON holds.

    :param path: The file's name, for messages.
    :raises PolicyError: If it is too deep or too long, or holds a number without an end.
    :raises ValueError: If it is no JSON.
    """
    try:
        json.loads(text, parse_int=len, parse_float=len, parse_constant=_refuse_constant)
    except RecursionError:
        raise PolicyError([f"{path}: is nested deeper than {DEEPEST} levels"]) from None
    return build_tree(_read_words(text, path), path)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


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
