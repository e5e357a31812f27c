# SPDX-License-Identifier: BSD-2-Clause
"""Read what a shell is given to do: a script, or the text behind ``bash -c``.

Lines are taken as they stand, in a ``case`` or an ``if`` too. Source: sh(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..core.values import NamedTuple
from .at_once import AtOnce
from .facts import Ulimit, Words, join_path, join_words
from .script_lines import Line, find_target, is_script, split_lines
from .shell_text import skip_keywords, split_ended
from .shell_variables import LONGEST, expand
from .slurm_job import read_job

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_ARRAY = re.compile(r"\s*(?:export\s+|local\s+)?([A-Za-z_]\w*)(\+?)=\((.*)", re.DOTALL)
_SETTING = re.compile(r"\.(ya?ml|json|toml|cfg|py|sh)$|^--[a-z]")
_MOST_ASSIGNED = 16
"""In one line, whose text is gone through again for each."""
_DEEPEST, _NAMED = 3, 8


class Reader(NamedTuple):
    """What knows commands: what one says, by which word it starts a run, what variables say.

    ``depth`` of the first is in how many commands it stands.
    """

    read_command: Callable[[Sequence[str], str, int], Words]
    name_start: Callable[[Sequence[str]], str]
    read_variables: Callable[[Mapping[str, str], str], Words]


class Source(NamedTuple):
    """Where a text is from: its name, whether its lines are told, how deep it stands in others."""

    name: str
    by_line: bool = True
    documents: int = 0
    commands: int = 0

    def locate(self, number: int) -> str:
        return f"{self.name}:{number}" if self.by_line else self.name


def read_shell(text: str, source: Source, environment: Mapping[str, str], reader: Reader) -> Words:
    """Return what a script says.

    :param environment: What is set where it will run, as far as that is known.
    """
    return _Script(source, environment, reader).read(text)


class _Script:
    """A script that is read line by line: what is set, what it has started, what it has written."""

    def __init__(self, source: Source, environment: Mapping[str, str], reader: Reader) -> None:
        self.source, self.reader = source, reader
        self.variables = dict(environment)
        self.starts: list[str] = []
        self.written: dict[str, str] = {}
        self.at_once = AtOnce()

    def read(self, text: str) -> Words:
        job = read_job(text, self.source.name)
        self.variables.update(job.variables)
        nodes = self.variables.get("SLURM_NNODES", "")
        self.at_once = AtOnce(int(nodes) if re.fullmatch("[0-9]{1,6}", nodes) else 1)
        parts = [(job.words, 0)]
        for line in split_lines(text):
            try:
                parts += self._read_line(line)
                if line.body:
                    parts.append((self._read_body(line), 0))
            except ValueError as exc:
                parts += self._refuse(line, exc)
        several = self.at_once.finish(self.source.name)
        said = [self.at_once.multiply(_fill(part, self.written), number) for part, number in parts]
        if self.starts and not self.at_once.has_steps:
            said[0] = _drop_tasks(said[0])
        noted = several if several.notes else _note_starts(self.source.name, self.starts)
        return join_words([*said, noted])

    def _refuse(self, line: Line, exc: ValueError) -> Iterator[tuple[Words, int]]:
        """Yield a problem, if the line seems to start a run."""
        if self.reader.name_start(re.findall(r"[^\s\"']+", line.text)[:64]):
            told = f"{self.source.locate(line.number)}: is not a command: {exc}"
            yield Words(problems=(told,)), 0

    def _read_body(self, line: Line) -> Words:
        """Read a here document, if it is a script; if a file is made of it, keep what it will say.

        Above a script lines are empty, so that its own are counted as in the one that holds it.
        """
        body = expand(line.body, self.variables) if line.expands else line.body
        text = expand(line.text, self.variables)
        commands = [skip_keywords(words) for words, _ended in split_ended(text)]
        target = find_target(text)
        if target:
            self.written[join_path(".", target)] = body
        elif self.source.documents < _DEEPEST and any(map(is_script, commands)):
            inner = self.source._replace(documents=self.source.documents + 1)
            return read_shell("\n" * line.last + body, inner, self.variables, self.reader)
        return Words()

    def _read_line(self, line: Line) -> Iterator[tuple[Words, int]]:
        """Yield what one line says, with its number as a start; what it assigns is kept."""
        where, array = self.source.locate(line.number), _ARRAY.match(line.text)
        if array:
            given = _flatten(expand(array[3].rstrip().rstrip(")"), self.variables))
            before = f"{self.variables.get(array[1], '')} " if array[2] else ""
            self.variables[array[1]] = f"{before}{given}"[:LONGEST]
            return
        for whole, ended in _split_line(line.text, self.variables):
            words = skip_keywords(whole)
            assigned = _find_assigned(words, self.variables)
            number = 0
            if assigned:
                self.variables.update(assigned)
                said = self.reader.read_variables(assigned, where)
                yield join_words([said, _note_loop(words, where)]), 0
            elif words[:1] == ["ulimit"]:
                yield Words(ulimits=tuple(_read_ulimit(words[1:], where))), 0
            elif words:
                said = self.reader.read_command(words, where, self.source.commands)
                number = self._see_start(whole, words, ended, said, where)
                yield said, number
                continue
            self.at_once.see(whole, ended, None, where)

    def _see_start(
        self, whole: Sequence[str], words: Sequence[str], ended: str, said: Words, where: str
    ) -> int:
        """Return the number of the start that a command is, or 0."""
        name = self.reader.name_start(words)
        begins = bool(name) and _starts_itself(said)
        if begins:
            self.starts.append(f"{name} ({where})" if self.source.by_line else name)
        runs = bool(name) and bool(said.wanted or begins)
        return self.at_once.see(whole, ended, said if runs else None, where)


def _starts_itself(said: Words) -> bool:
    """Tell whether what a command says is of a run, and not of a script that may start one."""
    is_script_alone = any(one.kind == "script" for one in said.wanted)
    return bool(said.facts or said.stated or said.library) and not is_script_alone


def _note_starts(where: str, names: Sequence[str]) -> Words:
    """Say of several starts which they are, and what counts of them."""
    if len(names) < 2:
        return Words()
    more = f" and {len(names) - _NAMED}" if len(names) > _NAMED else ""
    told = f"{where} starts {len(names)} runs, {', '.join(names[:_NAMED])}{more}"
    return Words(notes=(f"{told}: as one after the other, the largest of each value counts",))


def _fill(said: Words, written: Mapping[str, str]) -> Words:
    """Return what is said, with the text of files that the script itself writes."""
    wanted = [
        one._replace(text=written.get(join_path(".", one.path), one.text)) for one in said.wanted
    ]
    return said._replace(wanted=tuple(wanted)) if written else said


def _drop_tasks(job: Words) -> Words:
    """Return what a job asks for without its tasks, which srun alone starts."""
    kept = [fact for fact in job.facts if fact.key not in ("all_tasks", "ranks_per_node")]
    return job._replace(facts=tuple(kept))


def _split_line(text: str, variables: Mapping[str, str]) -> Iterator[tuple[list[str], str]]:
    """Yield the commands of a line, each with what is assigned in those before it.

    :param variables: They may change meanwhile.
    """
    commands = split_ended(expand(text, variables))
    known, at, again = dict(variables), 0, _MOST_ASSIGNED
    while at < len(commands):
        if again and known != variables:
            commands = split_ended(expand(text, variables))
            known, again = dict(variables), again - 1
        yield from commands[at : at + 1]
        at += 1


def _read_ulimit(words: list[str], where: str) -> Iterator[Ulimit]:
    """Yield what ``ulimit -Sn 1024`` sets; without a value it only tells."""
    letter, bounds = "f", ""
    for word in words:
        option = re.fullmatch(r"-([SH]*)([A-Za-z]?)", word)
        if option:
            letter, bounds = option[2] or letter, bounds + option[1]
        else:
            yield Ulimit(letter, bounds or "SH", word, where)


def _find_assigned(words: list[str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return what a command assigns, if it does nothing else; of a loop, its largest number."""
    if words[:1] == ["for"] and words[2:3] == ["in"] and len(words) > 3:
        counts = all(re.fullmatch("[0-9]{1,9}", word) for word in words[3:])
        return {words[1]: max(words[3:], key=int) if counts else words[3]}
    if words[:1] and words[0] in ("export", "local", "readonly", "declare", "typeset"):
        words = [word for word in words[1:] if not word.startswith("-")]
    pairs = [_ASSIGNED.fullmatch(word) for word in words]
    found = [pair for pair in pairs if pair]
    if len(found) < len(pairs):
        return {}
    return {
        pair[1]: (variables.get(pair[1], "") * bool(pair[2]) + _flatten(pair[3]))[:LONGEST]
        for pair in found
    }


def _note_loop(words: Sequence[str], where: str) -> Words:
    """Say of a loop over files of settings, or options, that only its first item is read."""
    items = words[3:] if words[:1] == ["for"] else []
    if len(items) < 2 or not all(_SETTING.search(one) for one in items):
        return Words()
    told = f"{where}: of the {len(items)} items of the loop {items[0]} is read"
    return Words(notes=(f"{told}; judge the largest by itself",))


def _flatten(text: str) -> str:
    """Return a text in one line, as it comes of a variable without quotes around it."""
    return text.replace("\\\n", " ").replace("\n", " ")
