# SPDX-License-Identifier: BSD-2-Clause
"""Make one run of all that words say: who wins, what is worked out, what is assumed and asked."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.values import NamedTuple
from ..training.keys import DEEPSPEED, KEYS
from .choice import ASSUMED, Choice, format_value
from .facts import INNER, Fact, Words
from .workings import Workings


class Taken(NamedTuple):
    """A run as words have it: ``section`` is the policy's ``training``.

    ``told`` has each value with its origin; ``asked`` what is only assumed, with the option that
    states it; ``notes`` what was decided between two; ``problems`` why it cannot be judged.
    """

    section: Mapping[str, object]
    told: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    origins: Mapping[str, str] = {}
    """Where each key of the section is stated."""

    @property
    def assumed(self) -> tuple[str, ...]:
        """Return the keys that no word states."""
        return tuple(key for key, where in self.origins.items() if where.startswith(ASSUMED))


def take(words: Words, stated: Mapping[str, object], folder: str) -> Taken:
    """Return the run that words amount to.

    :param stated: What options or a policy state, by key, which wins over all words.
    :param folder: Where relative paths begin.
    """
    choice = Choice(words, stated)
    choice.choose()
    Workings(choice, words, folder).work_out()
    section: dict[str, object] = {}
    for key, fact in choice.chosen.items():
        top, _dot, below = key.partition(".")
        if top in INNER or top == "gpus" or top not in KEYS or key in stated:
            continue
        if below and below in DEEPSPEED:
            section.setdefault(top, {})[below] = fact.value  # type: ignore[index]
        elif not below:
            section[top] = fact.value
    told = [_tell(key, choice.chosen[key]) for key in _list_told(choice, stated)]
    return Taken(
        section,
        tuple(told),
        tuple(choice.asked),
        tuple(choice.notes),
        tuple(choice.problems),
        {key: fact.where for key, fact in choice.chosen.items() if key not in stated},
    )


def _list_told(choice: Choice, stated: Mapping[str, object]) -> list[str]:
    """Return the keys of a policy that words state, in the order of its reference."""
    keys = list(KEYS)
    tops = {key: key.partition(".")[0] for key in choice.chosen if key not in stated}
    told = [key for key, top in tops.items() if top in KEYS and top != "gpus"]
    return sorted(told, key=lambda key: keys.index(tops[key]))


def _tell(key: str, fact: Fact) -> str:
    return f"{key.rpartition('.')[2]} {format_value(key, fact.value)} ({fact.where})"
