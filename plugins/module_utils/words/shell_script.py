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
from .script_lines import Line, find_close, find_target, is_script, split_lines
from .shell_functions import END, inline
from .shell_settings import Conditions, find_defaults, find_settings, flatten
from .shell_text import skip_keywords, split_ended
from .shell_variables import LONGEST, expand
from .slurm_job import read_job

_ARRAY = re.compile(
    r"\s*(?:(?:export|local|readonly|declare|typeset)\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)(\+?)=(?=\()"
)
_SETTING = re.compile(r"\.(ya?ml|json|toml|cfg|py|sh)$|^--[a-z]")
_MOST_ASSIGNED = 16
"""In one line, whose text is gone through again for each."""
_DEEPEST, _DEEPEST_SOURCE, _NAMED = 3, 8, 8
_MOST_SOURCED, _EACH_SOURCED = 20_000, 100
"""Lines of all files that are sourced, and how many each of them counts for besides."""
_DEFAULTED = re.compile(r"\$\{([A-Za-z_]\w*):?([-=])([0-9]{1,9})\}")
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


def read_shell(
    text: str,
    source: Source,
    environment: Mapping[str, str],
    reader: Reader,
    arguments: Sequence[str] = (),
) -> Words:
    """Return what a script says.

    :param environment: What is set where it will run, as far as that is known.
    :param arguments: What it is given; of none nothing is known.
    """
    script = _Script(source, environment, reader)
    if arguments:
        script.give(arguments)
    return script.read(text)


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
        self.maybe: set[str] = set()
        self.limits: list[Ulimit] = []
        self.arguments: list[str] = []
        self.locals: list[tuple[str, str | None]] = []
        self.outer: list[tuple[dict[str, str], str]] = []
        self.lines_left = [_MOST_SOURCED]
        self.folder, self.before = "", ""
        self.is_sourced = False

    def give(self, arguments: Sequence[str]) -> None:
        """Take the arguments of the script, in place of those before."""
        self.arguments = list(arguments)
        given = {str(at): one for at, one in enumerate(arguments[:9], start=1)}
        every = " ".join(arguments)
        for name in map(str, range(1, 10)):
            self.variables.pop(name, None)
        self.variables.update({**given, "@": every, "*": every, "#": str(len(arguments))})

    def read(self, text: str) -> Words:
        job = read_job(text, self.source.name)
        self.variables.update(job.variables)
        nodes = self.variables.get("SLURM_NNODES", "")
        self.at_once = AtOnce(int(nodes) if re.fullmatch("[0-9]{1,6}", nodes) else 1)
        parts = [(job.words, 0)]
        for line in inline(list(split_lines(text)), self.is_sourced):
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
        used = () if self.is_sourced else [name for name in self.told if name in self.used]
        unsure = tuple(self.told[name] for name in used)
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
            close = find_close(line.text, array.end())
            given = flatten(expand(line.text[array.end() + 1 : close], self.variables))
            before = f"{self.variables.get(array[1], '')} " if array[2] else ""
            yield self._set({array[1]: f"{before}{given}"[:LONGEST]}, where), 0
            rest = line.text[close + 1 :].lstrip(" \t;")
            yield from self._read_line(line._replace(text=rest, body="")) if rest else ()
            return
        text = self._mind_maybe(line.text, where)
        self.variables.update(find_defaults(text, self.variables))
        for whole, ended in _split_line(text, self.variables):
            if whole and whole[0].startswith("(") and not whole[0].startswith("(("):
                self.outer.append((dict(self.variables), self.folder))
            words = skip_keywords(self.conditions.open(whole))
            said, number = self._read_command(whole, words, ended, where)
            if number:
                self.used.update(_USED.findall(text))
                said = said._replace(ulimits=(*self.limits, *said.ulimits))
                self.limits.clear()
            yield said, number
            self.conditions.close(ended)
            while len(self.outer) > self.at_once.brackets:
                known, self.folder = self.outer.pop()
                self.variables.clear()
                self.variables.update(known)

    def _mind_maybe(self, text: str, where: str) -> str:
        """Return a line where the larger number counts of a default and what may be set."""

        def choose(match: re.Match[str]) -> str:
            name, sign, default = match.groups()
            known = self.variables.get(name, "")
            if name not in self.maybe or not known.isdecimal() or int(known) >= int(default):
                return match[0]
            self.told[name] = (
                f"{where}: {name} is {known} or {default}, by a condition: {default} counts"
            )
            self.used.add(name)
            if sign == "=":
                self.variables[name] = default
            return default

        return _DEFAULTED.sub(choose, text) if self.maybe else text

    def _read_command(
        self, whole: Sequence[str], words: Sequence[str], ended: str, where: str
    ) -> tuple[Words, int]:
        """Return what a command says, with its number as a start."""
        said = self._change(whole, words, ended, where)
        if said is None and words and not self.at_once.has_function(words[0]):
            said = self.reader.read_command(words, where, self.source.commands)
            number = self._see_start(whole, words, ended, said, where)
            return self._place(said), number
        if said is None and len(words) > 1:
            told = f"{where}: {words[0]} is given arguments, which are not put in"
            said = Words(notes=(told,))
        self.at_once.see(whole, ended, None, where)
        return said or Words(), 0

    def _change(
        self, whole: Sequence[str], words: Sequence[str], ended: str, where: str
    ) -> Words | None:
        """Keep what a command changes of the shell; ``None`` where it changes nothing of it."""
        settings, name = find_settings(words, self.variables), words[0] if words else ""
        if ended == "&" and (settings or name in ("cd", "ulimit")):
            return Words()  # In a process of its own.
        if self._scope(name, settings):
            return Words()
        if settings:
            return join_words([self._set(settings, where), _note_loop(words, where)])
        if name in ("cd", "pushd", "popd"):
            self._go(words[1:] if name != "popd" else ["-"])
        elif name == "shift" or name == "--":  # Of set.
            self._take_arguments(words)
        elif name == "ulimit":
            return self._read_ulimit(whole, words, where)
        elif name in ("source", ".") and len(words) > 1 and self._find_source(words[1]):
            return self._read_source(words[1])
        else:
            return None
        return Words()

    def _scope(self, name: str, settings: Mapping[str, str | None]) -> bool:
        """Keep what is local until its function ends; tell whether it does."""
        if name == "local":
            self.locals += [(one, self.variables.get(one)) for one in settings]
        for local, value in reversed(self.locals if name == END else []):
            self.variables.pop(local, None)
            if value is not None:
                self.variables[local] = value
        self.locals = [] if name == END else self.locals
        return name == END

    def _go(self, words: Sequence[str]) -> None:
        named = [word for word in words if not re.match("[0-9]?>|-.", word)]
        if named == ["-"]:
            self.folder, self.before = self.before, self.folder
        elif len(named) == 1 and "$" not in named[0]:
            self.folder, self.before = join_path(self.folder or ".", named[0]), self.folder

    def _take_arguments(self, words: Sequence[str]) -> None:
        if words[0] == "--":
            self.give(words[1:])
        elif self.arguments:
            number = words[1] if len(words) > 1 and words[1].isdecimal() else "1"
            self.give(self.arguments[min(int(number[:3]), len(self.arguments)) :])

    def _set(self, settings: Mapping[str, str | None], where: str) -> Words:
        """Keep what is set; under a condition the larger number."""
        kept: dict[str, str] = {}
        for name, value in settings.items():
            chosen, told = self.conditions.choose(name, self.variables.get(name), value)
            if told:
                self.told[name] = f"{where}: {told}"
            is_new = self.variables.pop(name, None) is None
            if is_new and not self.conditions.is_sure:
                self.maybe.add(name)
            elif self.conditions.is_sure:
                self.maybe.discard(name)
            if chosen is not None:
                self.variables[name] = kept[name] = chosen
        return self.reader.read_variables(kept, where)

    def _read_ulimit(self, whole: Sequence[str], words: Sequence[str], where: str) -> Words:
        told = f"{where}: {' '.join(words)}"
        if whole[0].startswith("(") or self.at_once.brackets:
            return Words(notes=(f"{told} counts within its brackets alone",))
        if not self.conditions.is_sure:
            hint = "is set under a condition: not followed; run preflight behind it"
            return Words(notes=(f"{told} {hint}",))
        self.limits += _read_ulimit(list(words[1:]), where)
        return Words()

    def _find_source(self, path: str) -> str:
        if self.source.documents >= _DEEPEST_SOURCE or path.endswith("/activate"):
            return ""
        look = self.reader.read_source
        text = look(join_path(self.folder, path)) if self.folder else ""
        text = text or look(path)
        return text if text.count("\n") < self.lines_left[0] else ""

    def _read_source(self, path: str) -> Words:
        """Read a file that is sourced: what it sets counts from there on."""
        inner = Source(path, True, self.source.documents + 1, self.source.commands)
        text = self._find_source(path)
        self.lines_left[0] -= text.count("\n") + _EACH_SOURCED
        script = _Script(inner, {}, self.reader)
        script.variables, script.limits, script.lines_left = (
            self.variables,
            self.limits,
            self.lines_left,
        )
        script.told, script.used, script.maybe = self.told, self.used, self.maybe
        script.is_sourced = True
        return script.read(text)

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
