# SPDX-License-Identifier: BSD-2-Clause
"""Read what a script asks Slurm for, in its lines of ``#SBATCH``; sbatch(1)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from ..core.values import NamedTuple
from .facts import JOB, Fact, Stated, Words
from .names import read_option
from .options import Option, split_all
from .quantities import parse_size
from .script_lines import MOST_LINES

_MIB = 2**20
_JOB = {
    "-n": "--ntasks",
    "-N": "--nodes",
    "-c": "--cpus-per-task",
    "-G": "--gpus",
    "-D": "--chdir",
}


class Job(NamedTuple):
    """What sbatch is asked for, and the variables that Slurm will set."""

    words: Words
    variables: Mapping[str, str]


def read_job(text: str, path: str) -> Job:
    asked: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(text.splitlines()[:MOST_LINES], start=1):
        if line.strip() and not line.startswith("#"):
            break  # Slurm reads no further than the first command.
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
        return Job(Words(), {})
    problems: list[str] = []
    facts = [
        fact for name, (value, where) in asked.items() for fact in _read_asked(name, value, where)
    ]
    stated = _state(asked, problems)
    words = Words(tuple(facts), stated=(stated,) if stated else (), problems=tuple(problems))
    words = words._replace(is_job=True)
    return Job(words, _find_variables(asked))


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
    if not gpus or not gpus[0]:
        return found
    return {**found, **dict.fromkeys(("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"), str(gpus[0]))}


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
