# SPDX-License-Identifier: BSD-2-Clause
"""Count the runs that a script has going at once: those behind ``&``, until it waits; sh(1).

Each script is counted by itself: a sweep is one script that is started often, and what runs beside
it, such as a server, is another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.values import NamedTuple
from .docker_run import ENGINES
from .facts import ARGUMENT, NAMED, Fact, Words
from .job_starters import starts_jobs
from .wrappers import ASSIGNMENT, PYTHON_FILE

_LOOPS = ("for", "while", "until", "select")
_BEFORE = ("do", "then", "!", "time")
_RANGE = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}")
_DETACHED = re.compile("-[a-zA-Z]*d[a-zA-Z]*|--detach")
_FUNCTION = re.compile(r"([A-Za-z_][\w-]*)\(\)")
_PROCESSES = ("ranks_per_node", "all_tasks", "world")
_MOST, _MOST_GOING = 4096, 256


class _Group(NamedTuple):
    """A loop, or what brackets hold: the first start in it; how often it goes round, 0 unknown."""

    kind: str
    first: int
    rounds: int = 1


class _Going(NamedTuple):
    """What goes on in the background: its starts, its script, and the loops that it is in."""

    numbers: tuple[int, ...]
    script: str
    loops: tuple[_Group, ...]

    def times(self, ended: Sequence[_Group]) -> int:
        """Return how many there are, where loops that wait for theirs count once."""
        number = 1
        for loop in self.loops:
            number = 1 if loop in ended else number * (loop.rounds or 1)
        return min(number, _MOST)


class AtOnce:
    """What a script has going, command by command.

    :param nodes: Those of the job, over which ``srun`` spreads what it starts.
    """

    def __init__(self, nodes: int = 1) -> None:
        self._nodes = max(nodes, 1)
        self._groups: list[_Group] = []
        self._branches: list[tuple[int, int]] = []
        self._going: list[_Going] = []
        self._waited: list[_Group] = []
        self._scripts: list[str] = [""]
        self._foreground: set[int] = set()
        self._most: dict[int, int] = {}
        self._functions: dict[str, tuple[int, ...]] = {}
        self._throttles: set[str] = set()
        self._function = ""
        self._unsure = ""
        self._apart = 0
        self._spread: list[int] = []
        self._differ = False
        self.has_steps = False
        """Whether srun or its like starts what a job has tasks for, or a script might."""

    def has_function(self, name: str) -> bool:
        """Tell whether a name is a function of the script that starts a run."""
        return name in self._functions

    @property
    def brackets(self) -> int:
        """In how many shells of its own is what is read now."""
        return sum(one.kind == "(" for one in self._groups)

    @property
    def _loops(self) -> tuple[_Group, ...]:
        return tuple(one for one in self._groups if one.kind == "loop")

    def see(self, words: Sequence[str], ended: str, said: Words | None, where: str) -> int:
        """Take the next command, and return the number of the start that it is, or 0.

        :param words: With the words of the shell in front of it.
        :param ended: What ends it, or the pipe that it is in.
        :param said: What it says of the run that it starts, if it starts one.
        """
        self._mind_function(words)
        self._mind_branch(words, ended)
        words = self._open(words)
        name = words[0] if words else ""
        number = 0
        if "$(jobs)" in " ".join(words) or name in ("jobs", *self._throttles):
            self._throttle(where)
        if name in _LOOPS:
            self._groups.append(_Group("loop", len(self._scripts), count_items(words)))
        elif name == "wait":
            self._wait(words[1:], where)
        elif name in self._functions:
            self._call(name, ended, where)
        elif said is not None:
            number = self._begin(words, ended == "&", said, where)
        self._close(words, ended)
        return number

    def _mind_function(self, words: Sequence[str]) -> None:
        """Notice where a function of the script's own begins, and ends."""
        named = _FUNCTION.match("".join(words[:2]))
        if named:
            self._function = named[1]
        elif words[:1] == ["function"] and len(words) > 1:
            self._function = words[1].rstrip("()")
        elif words[:1] == ["}"] and not any(one.kind == "{" for one in self._groups):
            self._function = ""

    def _mind_branch(self, words: Sequence[str], ended: str) -> None:
        """Forget at ``else`` what was started in the other branch."""
        name = words[0] if words else ""
        if name in ("if", "case"):
            self._branches.append((len(self._going), len(self._loops)))
        elif name in ("fi", "esac") and self._branches:
            self._branches.pop()
        elif (name in ("else", "elif") or ended.startswith(";;")) and self._branches:
            self._end(self._going[self._branches[-1][0] :])

    def _open(self, words: Sequence[str]) -> list[str]:
        """Return a command without what opens a group in front of it."""
        words = list(words)
        while words and (words[0] in _BEFORE or words[0] == "{" or _opens(words[0])):
            kind = words[0][:1]
            if words[0] not in _BEFORE:
                self._groups.append(_Group(kind, len(self._scripts)))
            words[:1] = [words[0][1:]] if _opens(words[0]) and words[0] != "(" else []
        return words

    def _close(self, words: Sequence[str], ended: str) -> None:
        """End the group that ends here; in the background all that it started goes on."""
        last = words[-1] if words else ""
        kinds = [{"done": "loop", "}": "{"}.get(words[0] if words else "", "")]
        kinds += ["("] if last.count(")") > last.count("(") else []
        closed = None
        for kind in kinds:
            if self._groups and self._groups[-1].kind == kind:
                closed = self._groups.pop()
        for number in range(closed.first, len(self._scripts)) if closed and ended == "&" else ():
            if number in self._foreground:
                self._go((number,), self._scripts[number])

    def _wait(self, names: Sequence[str], where: str) -> None:
        loops = self._loops
        if (
            loops and any(depth >= len(loops) for _going, depth in self._branches)
        ) or "-n" in names:
            self._throttle(where)
        elif loops:
            self._waited.append(loops[-1])
        one_of_them = bool(names) and not loops
        self._end(self._going[: len(names)] if one_of_them else self._going)

    def _throttle(self, where: str) -> None:
        """Say that only the shell knows when it goes on."""
        self._waited += self._loops
        if self._function:
            self._throttles.add(self._function)
        self._unsure = self._unsure or where

    def _call(self, name: str, ended: str, where: str) -> None:
        """Start what a function of the script's own starts."""
        numbers = self._functions[name]
        goes_on = ended == "&" or not self._foreground.issuperset(numbers)
        if goes_on:
            self._mind_loops(where)
            self._go(numbers, name)

    def _begin(self, words: Sequence[str], goes_on: bool, said: Words, where: str) -> int:
        number = len(self._scripts)
        words = [word for word in words if not ASSIGNMENT.fullmatch(word)] or [""]
        self._scripts.append(next(filter(PYTHON_FILE.fullmatch, words), " ".join(words[:2])))
        is_apart = words[0] in ENGINES or any(one.kind == "script" for one in said.wanted)
        self._spread += [number] if words[0] == "srun" else []
        goes_on = goes_on or _is_detached(words)
        self.has_steps = self.has_steps or is_apart or starts_jobs(words[0])
        if not goes_on:
            self._foreground.add(number)
        if self._function:
            self._functions[self._function] = (*self._functions.get(self._function, ()), number)
            return number
        if not goes_on:
            alike = [one for one in self._going if one.script == self._scripts[number]]
            self._mind_others(self._scripts[number])
            self._most[number] = 1 + sum(one.times(self._waited) for one in alike)
        else:
            self._mind_loops(where)
            self._go((number,), "" if is_apart else self._scripts[number])
        if is_apart and goes_on:
            self._apart += self._going[-1].times(self._waited) if self._going else 1
            self._unsure = self._unsure or (where if self._apart > 1 else "")
        return number

    def _mind_loops(self, where: str) -> None:
        if not all(one.rounds for one in self._loops if one not in self._waited):
            self._unsure = self._unsure or where

    def _go(self, numbers: tuple[int, ...], script: str) -> None:
        self._mind_others(script)
        if len(self._going) < _MOST_GOING:
            self._going.append(_Going(numbers, script, self._loops))

    def _mind_others(self, script: str) -> None:
        self._differ = self._differ or any(one.script != script for one in self._going)

    def _end(self, ended: Sequence[_Going]) -> None:
        """Count what goes on, and take away what does so no more."""
        total: dict[str, int] = {}
        for one in self._going:
            total[one.script] = total.get(one.script, 0) + one.times(self._waited)
        for one in self._going if total else ():
            for number in one.numbers if one.script else ():
                self._most[number] = max(min(total[one.script], _MOST), self._most.get(number, 1))
        gone = {id(one) for one in ended}
        self._going = [one for one in self._going if id(one) not in gone]

    def finish(self, path: str) -> Words:
        """Return how many there are at most, and what is not known of that."""
        self._end(())
        notes = []
        if self._unsure:
            told = f"{self._unsure}: how many runs {path} has at once is not known here; if they"
            notes.append(f"{told} are several, state --ranks-per-node N")
        most = max(self._most.values(), default=1)
        if most > 1:
            told = f"{path} has {most} runs of one script at once"
            notes.append(f"{told}: the largest of each value counts for each")
        if self._differ:
            told = f"{path} has different scripts at once: the largest counts, and not all together"
            notes.append(f"{told}; to count more, state --ranks-per-node N")
        return Words(notes=tuple(notes))

    def multiply(self, said: Words, number: int) -> Words:
        """Return what a start says, with the processes of all that run like it."""
        nodes = self._nodes if number in self._spread else 1
        return multiply(said, self._most.get(number, 1), nodes)


def _is_detached(words: Sequence[str]) -> bool:
    """Tell whether what is started goes on while the script does, as behind ``&``."""
    if "send-keys" in words[:2]:
        return True
    return words[0] in (*ENGINES, "tmux", "screen") and any(map(_DETACHED.fullmatch, words))


def multiply(said: Words, times: int, nodes: int = 1) -> Words:
    """Return what is said of a run that is started several times.

    :param nodes: Of as many, over which the starts are spread.
    """
    if times == 1 or any(fact.key == "world" and fact.rank == ARGUMENT for fact in said.facts):
        return said  # Of a world that a script is told, each is one process.
    return said._replace(facts=tuple(_multiply(said.facts, times, nodes)))


def _multiply(facts: Sequence[Fact], times: int, nodes: int) -> Iterator[Fact]:
    here = -(-times // nodes)
    if here > 1:
        yield Fact("runs", here, f"{here} at once", NAMED)
    for fact in facts:
        number = times if fact.key == "all_tasks" else here
        where = f"{fact.where}, {number} at once"
        if fact.key in _PROCESSES and isinstance(fact.value, int):
            yield fact._replace(value=fact.value * number, where=where)
        elif fact.key in _PROCESSES:
            yield from (fact, Fact("at_once", number, where, fact.rank))
        elif fact.key != "nodes":
            yield fact


def _opens(word: str) -> bool:
    return word.startswith("(") and not word.startswith("((")


def count_items(words: Sequence[str]) -> int:
    """Return how often a loop goes round: ``for i in 0 1 2``; 0 where only the shell knows."""
    if words[0] != "for" or words[2:3] != ["in"]:
        return 0
    number = 0
    for word in words[3:]:
        span = _RANGE.fullmatch(word)
        if not span and (word == "auto" or re.search(r"[$*?`{]", word)):
            return 0
        number += abs(int(span[2]) - int(span[1])) + 1 if span else 1
    return number
