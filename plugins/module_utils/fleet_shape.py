# SPDX-License-Identifier: BSD-2-Clause
"""Say what a host's result may hold: of each key that anything reads, what is accepted there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from .core.finding import FAIL, PASS, UNKNOWN, WAIVED
from .core.quote import one_line, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    Judge = Callable[[Any], str]

_DEEPEST = 8
"""How deep the value of a key that nothing reads may be; it is written to reports as it is."""


def _refuse(value: object, accepted: str) -> str:
    return f": is {quote(value)}; {accepted} is accepted"


def _judge_text(value: object) -> str:
    return "" if isinstance(value, str) else _refuse(value, "a text")


def _judge_text_or_null(value: object) -> str:
    return "" if value is None or isinstance(value, str) else _refuse(value, "a text or null")


def _judge_number(value: object) -> str:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return "" if value is None or is_number else _refuse(value, "a whole number or null")


def _judge_other(value: object) -> str:
    told = "a number that is finite, or a value that is not nested deeply,"
    return "" if _is_plain(value, _DEEPEST) else _refuse(value, told)


def choose(*choices: str) -> Judge:
    """Return what accepts these texts alone."""
    told = f"one of {', '.join(choices)}"
    return lambda value: "" if value in choices else _refuse(value, told)


def _list(judge: Judge, accepted: str) -> Judge:
    def judge_list(value: Any) -> str:
        if not isinstance(value, (list, tuple)):
            return _refuse(value, accepted)
        for number, one in enumerate(value, 1) if value else ():
            told = judge(one)
            if told:
                return f"[{number}]{told}"
        return ""

    return judge_list


def _map(keys: Mapping[str, Judge], needed: str = "", is_optional: bool = False) -> Judge:
    """Return what accepts a mapping; most of its values are texts, where these are right."""
    accepted = "a mapping or null" if is_optional else "a mapping"
    plain = (_judge_text, _judge_text_or_null)
    others = frozenset(key for key, judge in keys.items() if judge not in plain)

    def judge_map(value: Any) -> str:
        if not isinstance(value, dict):
            return "" if value is None and is_optional else _refuse(value, accepted)
        if needed and needed not in value:
            return f".{needed}: is missing"
        for key, one in value.items():
            if not isinstance(one, str) or key in others:
                told = keys.get(key, _judge_other)(one)
                if told:
                    return f".{key}{told}"
        return ""

    return judge_map


def _is_plain(value: object, depth: int) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if not isinstance(value, (dict, list, tuple)):
        return True
    below = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_plain(one, depth - 1) for one in below)


def _judge_command(value: object) -> str:
    return "" if isinstance(value, str) else _WORDS(value)


_WORDS = _list(_judge_text, "a text or a list of texts")
_LINE = _map({"file": _judge_text, "line": _judge_number, "text": _judge_text}, is_optional=True)
_REMEDY = {
    "text": _judge_text,
    "commands": _list(_judge_command, "a list of commands"),
    "then": _judge_text,
}
_CAUSE = {
    **dict.fromkeys(("code", "text", "writer", "verdict"), _judge_text),
    "at": _LINE,
    "shadows": _list(_LINE, "a list of lines"),
    "remedy": _map(_REMEDY),
}
_TEXTS = ("place", "item", "bound", "required", "how", "reason", "waiver", "owner")
_AHEAD = ("next_session", "next_restart", "after_boot")
_FINDING = {
    "status": choose(PASS, FAIL, UNKNOWN, WAIVED),
    **dict.fromkeys((*_TEXTS, *_AHEAD), _judge_text),
    "observed": _judge_text_or_null,
    "causes": _list(_map(_CAUSE, "text"), "a list of causes"),
}
RESULT: Mapping[str, Judge] = {
    "measured": _judge_text_or_null,
    "policy": _judge_text_or_null,
    "findings": _list(_map(_FINDING, "status"), "a list"),
}
"""Of a host that was checked, beside what else it says and nothing reads."""

ENTRY: Mapping[str, Judge] = {
    "reason": _judge_text,
    "groups": _list(_judge_text, "a list of texts"),
}
"""Of a host in a document, beside that."""


def find_misfit(data: Mapping[str, object], keys: Mapping[str, Judge]) -> str:
    """Return the first value of a mapping that is not accepted, in a sentence, or nothing.

    :param keys: What is looked at; others may be whatever they are.
    """
    for key, judge in keys.items():
        told = judge(data[key]) if key in data else ""
        if told:
            return one_line(f"{key}{told}")
    return ""
