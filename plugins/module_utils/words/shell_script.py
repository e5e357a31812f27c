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
from .names import AUTO
from .script_lines import Line, find_target, is_script, split_lines
from .shell_functions import inline
from .shell_settings import Conditions, find_defaults, find_settings, flatten
from .shell_text import skip_keywords, split_ended
from .shell_variables import LONGEST, expand
from .slurm_job import read_job

_ARRAY = re.compile(r"\s*(?:export\s+|local\s+)?([A-Za-z_]\w*)(\+?)=\((.*)", re.DOTALL)
_SETTING = re.compile(r"\.(ya?ml|json|toml|cfg|py|sh)$|^--[a-z]")
_MOST_ASSIGNED = 16
"""In one line, whose text is gone through again for each."""
_DEEPEST, _NAMED = 3, 8
_PATHS = ("output_dir", "cache_dir")
_RELATIVE = re.compile(f"(?!{AUTO}$)(?!.*://)[^/~$].*", re.DOTALL)
_USED = re.compile(r"\$\{?([A-Za-z_]\w*)")


class Reader(NamedTuple):
    """What knows commands: what one says, by which word it starts a run, what variables say.

    ``depth`` of the first is in how many commands it stands. ``read_source`` returns what a file
    holds that is sourced; nothing where it cannot be read.
    """

    read_command: Callable[[Sequence[str], str, int], Words]
    name_start: Callable[[Sequence[str]], str]
    read_variables: Callable[[Mapping[str, str], str], Words]
    read_source: Callable[[str], str] = lambda _path: ""


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
        self.conditions = Conditions()
        self.told: dict[str, str] = {}
        self.used: set[str] = set()
        self.folder = ""

    def read(self, text: str) -> Words:
        job = read_job(text, self.source.name)
        self.variables.update(job.variables)
        nodes = self.variables.get("SLURM_NNODES", "")
        self.at_once = AtOnce(int(nodes) if re.fullmatch("[0-9]{1,6}", nodes) else 1)
        parts = [(job.words, 0)]
        for line in inline(list(split_lines(text))):
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
        unsure = tuple(self.told[name] for name in self.told if name in self.used)
        return join_words([*said, noted, Words(notes=unsure)])

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
            given = flatten(expand(array[3].rstrip().rstrip(")"), self.variables))
            before = f"{self.variables.get(array[1], '')} " if array[2] else ""
            self.variables[array[1]] = f"{before}{given}"[:LONGEST]
            return
        folder = self.folder
        self.variables.update(find_defaults(line.text, self.variables))
        for whole, ended in _split_line(line.text, self.variables):
            words = skip_keywords(self.conditions.open(whole))
            said, number = self._read_command(whole, words, ended, where)
            if number:
                self.used.update(_USED.findall(line.text))
            yield said, number
            self.conditions.close(ended)
        if line.text.strip()[:1] == "(" and line.text.strip()[-1:] == ")":
            self.folder = folder

    def _read_command(
        self, whole: Sequence[str], words: Sequence[str], ended: str, where: str
    ) -> tuple[Words, int]:
        """Return what a command says, with its number as a start."""
        settings, name = find_settings(words, self.variables), words[0] if words else ""
        said = Words()
        if settings:
            said = join_words([self._set(settings, where), _note_loop(words, where)])
        elif name in ("cd", "pushd"):
            self._go(words[1:])
        elif name == "ulimit":
            said = self._read_ulimit(whole, words, where)
        elif name in ("source", ".") and len(words) > 1 and self._find_source(words[1]):
            said = self._read_source(words[1])
        elif self.at_once.has_function(name):
            told = f"{where}: {name} is given arguments, which are not put in"
            said = Words(notes=(told,) * (len(words) > 1))
        elif words:
            said = self.reader.read_command(words, where, self.source.commands)
            number = self._see_start(whole, words, ended, said, where)
            return self._place(said), number
        self.at_once.see(whole, ended, None, where)
        return said, 0

    def _go(self, words: Sequence[str]) -> None:
        named = [word for word in words if not re.match("[0-9]?>|-", word)]
        if len(named) == 1 and "$" not in named[0]:
            self.folder = join_path(self.folder or ".", named[0])

    def _set(self, settings: Mapping[str, str | None], where: str) -> Words:
        """Keep what is set; under a condition the larger number."""
        kept: dict[str, str] = {}
        for name, value in settings.items():
            chosen, told = self.conditions.choose(name, self.variables.get(name), value)
            if told:
                self.told[name] = f"{where}: {told}"
            self.variables.pop(name, None)
            if chosen is not None:
                self.variables[name] = kept[name] = chosen
        return self.reader.read_variables(kept, where)

    def _read_ulimit(self, whole: Sequence[str], words: Sequence[str], where: str) -> Words:
        if whole[0].startswith("(") or self.at_once.is_in_brackets:
            told = f"{where}: {' '.join(words)} counts within its brackets alone"
            return Words(notes=(told,))
        return Words(ulimits=tuple(_read_ulimit(list(words[1:]), where)))

    def _find_source(self, path: str) -> str:
        is_deep = self.source.documents >= _DEEPEST
        return "" if is_deep or path.endswith("/activate") else self.reader.read_source(path)

    def _read_source(self, path: str) -> Words:
        """Read a file that is sourced: what it sets counts from there on."""
        inner = Source(path, True, self.source.documents + 1, self.source.commands)
        script = _Script(inner, {}, self.reader)
        script.variables = self.variables
        return script.read(self._find_source(path))

    def _place(self, said: Words) -> Words:
        """Return what is said with relative paths in the folder that the script went to."""
        if not self.folder:
            return said
        facts = [
            one._replace(value=join_path(self.folder, str(one.value)))
            if one.key in _PATHS and _RELATIVE.fullmatch(str(one.value))
            else one
            for one in said.facts
        ]
        wanted = [one._replace(folder=join_path(self.folder, one.folder)) for one in said.wanted]
        return said._replace(facts=tuple(facts), wanted=tuple(wanted))

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


def _note_loop(words: Sequence[str], where: str) -> Words:
    """Say of a loop over files of settings, or options, that only its first item is read."""
    items = words[3:] if words[:1] == ["for"] else []
    if len(items) < 2 or not all(_SETTING.search(one) for one in items):
        return Words()
    told = f"{where}: of the {len(items)} items of the loop {items[0]} is read"
    return Words(notes=(f"{told}; judge the largest by itself",))
