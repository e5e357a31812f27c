# SPDX-License-Identifier: BSD-2-Clause
"""Count the runs that a script has going at once: those behind ``&``, until it waits; sh(1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.values import NamedTuple
from .facts import JOB, Fact, Words
from .wrappers import PYTHON_FILE

_LOOPS = ("for", "while", "until", "select")
_BEFORE = ("do", "then", "else", "if", "elif", "!", "{", "(", "time")
_RANGE = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}")
_OF_RANKS = ("ranks_per_node", "world", "all_tasks", "nodes", "threads")
_MOST = 4096


class Start(NamedTuple):
    """One start of a run: its script, how often a loop has it, whether it says what it loads."""

    script: str
    times: int
    says: bool


class AtOnce:
    """What a script has going, command by command.

    :param nodes: Those of the job, over which ``srun`` spreads what it starts.
    """

    def __init__(self, nodes: int = 1) -> None:
        self._nodes = max(nodes, 1)
        self._loops: list[int] = []
        self._running: list[Start] = []
        self._most = 1
        self._where = ""
        self._unsure = ""

    def see(
        self, words: Sequence[str], in_background: bool, said: Words | None, where: str
    ) -> None:
        """Take the next command.

        :param words: With the words of the shell in front of it.
        :param said: What it says of the run that it starts, if it starts one.
        """
        words = _skip_words(words)
        if words[:1] and words[0] in _LOOPS:
            self._loops.append(count_items(words))
        elif words[:1] == ["done"] and self._loops:
            self._loops.pop()
        elif words[:1] == ["wait"]:
            self._wait(where)
        elif said is not None:
            self._begin(words, in_background, said, where)

    def _wait(self, where: str) -> None:
        if self._loops and self._running:
            self._unsure = self._unsure or where
        self._running.clear()

    def _begin(self, words: Sequence[str], in_background: bool, said: Words, where: str) -> None:
        times = 1
        for count in self._loops if in_background else ():
            if not count:
                self._unsure = self._unsure or where
            times *= count or 1
        if words[0] == "srun":
            times = -(-times // self._nodes)
        script = next(filter(PYTHON_FILE.fullmatch, words), words[0])
        says = bool(said.wanted) or any(fact.key not in _OF_RANKS for fact in said.facts)
        start = Start(script, min(times, _MOST), says)
        most = _count([*self._running, start])
        if most > self._most:
            self._most, self._where = most, where
        if in_background:
            self._running.append(start)

    def tell(self, path: str) -> Words:
        """Return how many there are at most, and what is not known of that."""
        if self._unsure:
            told = f"{self._unsure}: how many runs {path} has at once is not known here; if they"
            return Words(notes=(f"{told} are several, state --ranks-per-node N",))
        if self._most == 1:
            return Words()
        told = f"{path} has {self._most} runs at once"
        fact = Fact("at_once", self._most, self._where, JOB)
        return Words((fact,), notes=(f"{told}: the largest of each value counts for each",))


def _count(running: Sequence[Start]) -> int:
    """Return how many run; one that loads nothing by its words counts only beside its like."""
    total = 0
    for script in {one.script for one in running}:
        like = [one for one in running if one.script == script]
        times = sum(one.times for one in like)
        total += times if times > 1 or any(one.says for one in like) else 0
    return min(total, _MOST)


def _skip_words(words: Sequence[str]) -> Sequence[str]:
    at = 0
    while at < len(words) and words[at] in _BEFORE:
        at += 1
    return words[at:]


def count_items(words: Sequence[str]) -> int:
    """Return how often a loop goes round: ``for i in 0 1 2``; 0 where only the shell knows."""
    if words[0] != "for" or words[2:3] != ["in"]:
        return 0
    number = 0
    for word in words[3:]:
        span = _RANGE.fullmatch(word)
        if not span and re.search(r"[$*?`{]", word):
            return 0
        number += abs(int(span[2]) - int(span[1])) + 1 if span else 1
    return number
