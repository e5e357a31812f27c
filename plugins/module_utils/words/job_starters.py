# SPDX-License-Identifier: BSD-2-Clause
"""Read how many processes srun, mpirun and their like start on each node.

Sources: the manual pages of srun(1), Open MPI's mpirun(1), MPICH's mpiexec, aprun(1), flux-run(1),
parallel(1) and xargs(1); the documents of horovodrun, composer and ibrun.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .facts import NAMED, STEP, Fact, Words
from .names import AUTO, read_option
from .options import COMMAND_LINE, Option, split_all

_ALL, _HERE, _NODES = "all_tasks", "ranks_per_node", "nodes"
_TASKS = {"-n": _ALL, "--ntasks": _ALL, "-np": _ALL}
_MPI = {**_TASKS, "--np": _ALL, "-c": _ALL, "-N": _HERE, "-npernode": _HERE, "-ppn": _HERE}
_SLURM = {**_TASKS, "-N": _NODES, "--gpus": ""}
_STARTERS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("srun", "flux", "torchx"), _SLURM),
    **dict.fromkeys(("mpirun", "mpiexec", "orterun", "prterun", "prun"), _MPI),
    **dict.fromkeys(("mpirun.mpich", "mpirun.openmpi", "mpiexec.hydra", "mpirun_rsh"), _MPI),
    "horovodrun": {"-np": _ALL, "--num-proc": _ALL},
    "aprun": {"-n": _ALL, "-N": _HERE},
    "ibrun": {"-n": _ALL, "-np": _ALL},
    "composer": {"-n": _HERE, "--nproc": _HERE},
    "parallel": {},
    "xargs": {},
}
"""By the name of what starts a run several times, what its options count."""
_BESIDE = {"parallel": ("-j", "--jobs", "-P", "--max-procs"), "xargs": ("-P", "--max-procs")}
"""What starts a command again and again, and its options that say how many go at once."""
_TAKE_ALL = ("composer", "ibrun")
"""Where nobody says how many, they start as many as there are GPUs, or tasks of the job."""
_USUAL = dict.fromkeys(("-np", "--np", "--nproc", "--nprocs", "--num-proc", "--num_cores"), _HERE)
"""How those count that are not known here."""
_HOSTS = ("-H", "-host", "--host", "-hosts", "--hosts")
_WHOLE = re.compile("[0-9]{1,6}")
_GLUED = re.compile("(-[nNPj])([0-9].*)")


def starts_jobs(word: str) -> bool:
    """Tell whether a command is one that starts others several times."""
    return word.rpartition("/")[2] in _STARTERS


def read_jobs(words: Sequence[str], where: str) -> Words:
    """Return what stands in front of a launcher and says how often it is started.

    :param where: ``file:line``, or nothing where it is our own command line.
    """
    if not words:
        return Words()
    starter = words[0].rpartition("/")[2]
    facts = _count(words[1:], where, _STARTERS.get(starter, _USUAL))
    if starter in _TAKE_ALL:
        facts.append(Fact(_HERE, AUTO, starter, NAMED))
    counts = any(one == "-n" and two.isdecimal() for one, two in zip(words, words[1:]))
    if facts or starter in _STARTERS or not counts:
        return Words(tuple(facts))
    told = f"{where or COMMAND_LINE}: not read: {starter} -n: no launcher of that name is known"
    return Words(notes=(f"{told}; it is taken to start one process",))


def count_beside(words: Sequence[str]) -> int:
    """Return how many parallel or xargs has at once: 0 where that is not known, 1 of others."""
    starter = words[0].rpartition("/")[2] if words else ""
    if starter not in _BESIDE:
        return 1
    values = [value for name, value in _split(words[1:]) if name in _BESIDE[starter]]
    if not values:
        return 1 if starter == "xargs" else 0
    last = values[-1] or ""
    return int(last) if _WHOLE.fullmatch(last) else 0


def note_unknown(words: Sequence[str], where: str) -> Words:
    """Say that only the shell that runs it knows how many parallel or xargs has at once."""
    starter = words[0].rpartition("/")[2]
    told = f"{where or COMMAND_LINE}: how many runs {starter} has at once is not known here"
    return Words(notes=(f"{told}; if they are several, state --ranks-per-node N",))


def read_module(words: Sequence[str], where: str) -> Words:
    """Return how often a module that is not known starts the script that it is given."""
    starter = words[0].partition(".")[0]
    facts = _count(words[1:], where, _STARTERS.get(starter, _USUAL))
    return Words((*facts, Fact(_HERE, AUTO, f"-m {words[0]}", NAMED)))


def _count(words: Sequence[str], where: str, counted: Mapping[str, str]) -> list[Fact]:
    facts: list[Fact] = []
    for name, value in _split(words):
        here = where or name
        if counted.get(name) and value and _WHOLE.fullmatch(value):
            facts.append(Fact(counted[name], int(value), here, STEP))
        elif name not in counted and value is not None:
            shown = f"{where}: {name}" if where else name
            found = read_option(name, value, here, STEP, shown)
            facts += [one for one in found if isinstance(one, Fact)]
            facts += [Fact(_HERE, most, here, STEP) for most in _read_slots(name, value)]
    return facts


def _read_slots(name: str, value: str) -> list[int]:
    """Return the most processes of one host: of ``-H a:4,b:4``, or ``--map-by ppr:4:node``."""
    if name in _HOSTS:
        return sorted(map(int, re.findall(r":(\d{1,6})(?:,|$)", value)))[-1:]
    each = re.fullmatch(r"ppr:(\d{1,6}):node.*", value) if name.endswith("-map-by") else None
    return [int(each[1])] if each else []


def _split(words: Sequence[str]) -> Sequence[Option]:
    """Return the options, also those with a number glued to them."""
    glued = (_GLUED.fullmatch(word) for word in words)
    apart = [one.groups() if one else (word,) for one, word in zip(glued, words)]
    return split_all([word for part in apart for word in part]).options
