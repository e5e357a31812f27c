# SPDX-License-Identifier: BSD-2-Clause
"""Read a script of a shell: what ``#SBATCH`` asks for, what is exported, what it runs.

Lines are taken as they stand, in a ``case`` or an ``if`` too. Source: sbatch(1), sh(1).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.values import NamedTuple
from .at_once import AtOnce
from .facts import JOB, Fact, Stated, Ulimit, Words, join_path, join_words
from .launchers import (
    name_start,
    note_starts,
    read_command,
    read_variables,
    starts_itself,
    starts_run,
)
from .names import read_option
from .options import Option, split_all
from .quantities import parse_size
from .script_lines import MOST_LINES, Line, find_target, is_script, split_lines
from .shell_text import skip_keywords, split_ended
from .shell_variables import LONGEST, expand

_MIB = 2**20
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_ARRAY = re.compile(r"\s*(?:export\s+|local\s+)?([A-Za-z_]\w*)(\+?)=\((.*)", re.DOTALL)
_SETTING = re.compile(r"\.(ya?ml|json|toml|cfg|py|sh)$|^--[a-z]")
_MOST_ASSIGNED = 16
"""In one line, whose text is gone through again for each."""
_DEEPEST = 3
_JOB = {
    "-n": "--ntasks",
    "-N": "--nodes",
    "-c": "--cpus-per-task",
    "-G": "--gpus",
    "-D": "--chdir",
}


def read_script(text: str, path: str, environment: Mapping[str, str], depth: int = 0) -> Words:
    """Return what a script says.

    :param path: Its name, for origins.
    :param environment: What is set where it will run, as far as that is known.
    :param depth: In how many scripts it stands, as their here document.
    """
    job = _read_job(text, path)
    variables = {**environment, **job.variables}
    parts = [(job.words, 0)]
    starts: list[str] = []
    nodes = variables.get("SLURM_NNODES", "")
    at_once = AtOnce(int(nodes) if re.fullmatch("[0-9]{1,6}", nodes) else 1)
    written: dict[str, str] = {}
    for line in split_lines(text):
        try:
            parts += _read_line(line, path, variables, starts, at_once)
            if line.body:
                parts.append((_read_body(line, path, variables, written, depth), 0))
        except ValueError as exc:
            if _looks_like_run(line.text):
                told = f"{path}:{line.number}: is not a command: {exc}"
                parts.append((Words(problems=(told,)), 0))
    several = at_once.finish(path)
    said = [at_once.multiply(_fill(part, written), number) for part, number in parts]
    if starts and not at_once.has_steps:
        said[0] = _drop_tasks(said[0])
    return join_words([*said, several if several.notes else note_starts(path, starts)])


def _read_body(
    line: Line, path: str, variables: Mapping[str, str], written: dict[str, str], depth: int
) -> Words:
    """Read a here document, if it is a script; if a file is made of it, keep what it will say.

    Above a script lines are empty, so that its own are counted as in the one that holds it.
    """
    body = expand(line.body, variables) if line.expands else line.body
    text = expand(line.text, variables)
    commands = [skip_keywords(words) for words, _ended in split_ended(text)]
    target = find_target(text)
    if target:
        written[join_path(".", target)] = body
    elif depth < _DEEPEST and any(map(is_script, commands)):
        return read_script("\n" * line.last + body, path, variables, depth + 1)
    return Words()


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


def _looks_like_run(text: str) -> bool:
    return starts_run(re.findall(r"[^\s\"']+", text)[:64])


def _read_line(
    line: Line, path: str, variables: dict[str, str], starts: list[str], at_once: AtOnce
) -> Iterator[tuple[Words, int]]:
    """Yield what one line says, with its number as a start; what it assigns is kept.

    :param starts: What starts a run is added, with the number of its line.
    """
    where, array = f"{path}:{line.number}", _ARRAY.match(line.text)
    if array:
        given = _flatten(expand(array[3].rstrip().rstrip(")"), variables))
        before = f"{variables.get(array[1], '')} " if array[2] else ""
        variables[array[1]] = f"{before}{given}"[:LONGEST]
        return
    for whole, ended in _split_line(line.text, variables):
        words = skip_keywords(whole)
        assigned = _find_assigned(words, variables)
        if assigned:
            variables.update(assigned)
            yield join_words([read_variables(assigned, where), _note_loop(words, where)]), 0
        elif words[:1] == ["ulimit"]:
            yield Words(ulimits=tuple(_read_ulimit(words[1:], where))), 0
        elif words:
            name, said = name_start(words), read_command(words, where)
            begins = bool(name) and starts_itself(said)
            starts += [f"{name} ({where})"] if begins else []
            runs = bool(name) and bool(said.wanted or begins)
            yield said, at_once.see(whole, ended, said if runs else None, where)
            continue
        at_once.see(whole, ended, None, where)


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


class _Job(NamedTuple):
    """What sbatch is asked for, and the variables that Slurm will set."""

    words: Words
    variables: Mapping[str, str]


def _read_job(text: str, path: str) -> _Job:
    asked: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(text.splitlines()[:MOST_LINES], start=1):
        if not re.match(r"#SBATCH\s", line):
            continue
        try:
            options = split_all(shlex.split(line[len("#SBATCH") :], comments=True)).options
        except ValueError:
            options = ()
        for name, value in map(_expand_short, options):
            if value is not None:
                asked[name] = (value, f"{path}:{number}")
    if not asked:
        return _Job(Words(), {})
    problems: list[str] = []
    facts = [
        fact for name, (value, where) in asked.items() for fact in _read_asked(name, value, where)
    ]
    stated = _state(asked, problems)
    words = Words(tuple(facts), stated=(stated,) if stated else (), problems=tuple(problems))
    words = words._replace(is_job=True)
    return _Job(words, _find_variables(asked))


def _expand_short(option: Option) -> Option:
    name, value = option
    glued = re.fullmatch(r"(-[nNcGD])(.+)", name)
    if glued and not name.startswith("--"):
        name, value = glued[1], glued[2]
    return Option(_JOB.get(name, name), value)


def _read_asked(name: str, value: str, where: str) -> Iterator[Fact]:
    shown = f"{where}: {name}"
    if name == "--ntasks" and value.isdecimal():
        yield Fact("all_tasks", int(value), where, JOB)
    elif name == "--nodes":
        yield from _only_facts(read_option("nnodes", value.rpartition("-")[2], where, JOB, shown))
    elif name == "--ntasks-per-node":
        yield from _only_facts(read_option(name, value, where, JOB, shown))
    elif name in ("--gpus-per-node", "--gres"):
        count = _count_gpus(name, value)
        if count:
            yield Fact("gpus.count", count, where, JOB)


def _only_facts(found: Iterable[object]) -> Iterator[Fact]:
    return (one for one in found if isinstance(one, Fact))


def _count_gpus(name: str, value: str) -> int:
    """Return the GPUs of ``8``, ``a100:8`` or ``gpu:a100:8``."""
    if name == "--gres" and not value.startswith("gpu"):
        return 0
    number = value.rpartition(":")[2].partition("(")[0]
    return int(number) if number.isdecimal() and len(number) < 6 else 0


def _find_variables(asked: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return what Slurm will set in the job, as far as the script tells."""
    names = {
        "SLURM_CPUS_PER_TASK": "--cpus-per-task",
        "SLURM_NTASKS_PER_NODE": "--ntasks-per-node",
        "SLURM_NTASKS": "--ntasks",
        "SLURM_NNODES": "--nodes",
        "SLURM_JOB_NUM_NODES": "--nodes",
        "SLURM_JOB_NAME": "--job-name",
    }
    found = {name: asked[option][0] for name, option in names.items() if option in asked}
    gpus = [
        _count_gpus(name, asked[name][0]) for name in ("--gpus-per-node", "--gres") if name in asked
    ]
    return {**found, "SLURM_GPUS_ON_NODE": str(gpus[0])} if gpus and gpus[0] else found


def _state(asked: Mapping[str, tuple[str, str]], problems: list[str]) -> Stated | None:
    """Return the memory and the CPUs that the job will have on each node."""
    nodes = _number({**asked, "--nodes": _last_of(asked)}, "--nodes", []) or 1
    all_tasks = _number(asked, "--ntasks", [])
    tasks = _number(asked, "--ntasks-per-node", problems) or -(-all_tasks // nodes) or 1
    cpus = _number(asked, "--cpus-per-task", problems)
    found: dict[str, object] = {}
    at: dict[str, str] = {}
    if cpus and ("--ntasks-per-node" in asked or all_tasks):
        found["cpus"], at["cpus"] = float(cpus * tasks), asked["--cpus-per-task"][1]
    gpus = int(_find_variables(asked).get("SLURM_GPUS_ON_NODE", 0))
    for name, times in (
        ("--mem", 1),
        ("--mem-per-cpu", (cpus or 1) * tasks),
        ("--mem-per-gpu", gpus),
    ):
        if name not in asked:
            continue
        value, where = asked[name]
        try:
            size = parse_size(value, _MIB) * times
        except ValueError as exc:
            problems.append(f"{where}: {name}: {exc}")
            continue
        if size:
            found["memory"], at["memory"] = size, where
    return Stated("job:slurm", at, **found) if found else None  # type: ignore[arg-type]


def _last_of(asked: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Return the most nodes of ``1-4``."""
    value, where = asked.get("--nodes", ("1", ""))
    return value.rpartition("-")[2], where


def _number(asked: Mapping[str, tuple[str, str]], name: str, problems: list[str]) -> int:
    if name not in asked:
        return 0
    value, where = asked[name]
    if not re.fullmatch("[0-9]{1,6}", value):
        problems.append(f"{where}: {name}: {value!r} is not a whole number")
        return 0
    return int(value)
