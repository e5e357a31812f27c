# SPDX-License-Identifier: BSD-2-Clause
"""What the words of a run say: facts with their origins, and limits that the run states itself."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.values import NamedTuple

DEFAULT, NAMED, JOB, STEP, ZERO, LAUNCHER_FILE, FILE, ENVIRONMENT, LAUNCHER, ARGUMENT = range(10)
MEASURED = ARGUMENT + 1
"""Who wins where two say different things, the strongest last.

A script's arguments win over its file of configuration, and a launcher's options over the
launcher's. What the environment says wins over files: torchrun, SWIFT and Slurm read it so. What
DeepSpeed's JSON says of the loader is checked against the arguments by transformers, which win.
What was seen of the run itself wins over all that is said of it.
"""

RANKS = {
    DEFAULT: "a default",
    NAMED: "a name",
    JOB: "the job",
    STEP: "a step of it",
    ZERO: "DeepSpeed's JSON",
    LAUNCHER_FILE: "a launcher's file",
    FILE: "a file",
    ENVIRONMENT: "the environment",
    LAUNCHER: "a launcher's option",
    ARGUMENT: "an argument",
    MEASURED: "what was measured",
}


class Fact(NamedTuple):
    """One value that words state.

    ``key`` is a key of the policy's section ``training``, with a dot before one of ``deepspeed``
    or ``gpus``, or one of :data:`INNER`. ``where`` is ``file:line``, an option or a variable.
    ``problem`` says why the value cannot be known; then ``value`` means nothing.
    """

    key: str
    value: object
    where: str
    rank: int
    problem: str = ""


_LIBRARIES = ("", "torch", "accelerate", "transformers", "trl")
"""The later ones use those before them."""

INNER = (
    *("config", "samples", "length", "pixels", "nodes", "world", "all_tasks", "zero", "model"),
    *("at_once", "runs", "lora", "lora_rank"),
)
"""What no policy states and what its keys are worked out from."""


COMPOSE, VARIABLES = "compose:", "variables"
"""Kinds of files that are wanted: the first is followed by the name of a service."""


class Wanted(NamedTuple):
    """A file that words name, and what is read there: ``kind`` is empty where it says itself.

    Without one that ``must`` be there nothing is lost but what it may have said. ``text`` is what
    the script that names it writes into it, ``folder`` where that has gone before.
    """

    path: str
    where: str
    kind: str = ""
    must: bool = True
    text: str = ""
    folder: str = ""
    arguments: tuple[str, ...] = ()
    """What a script is given."""


class Stated(NamedTuple):
    """The limits that words give the run: a container's, a pod's, a job's. Sizes are in bytes.

    ``place`` names it as findings do. ``shm`` is the size of /dev/shm, ``pids`` the number of
    tasks. ``None`` stands for what nothing is said of. ``at`` tells where each is said.
    """

    place: str
    at: Mapping[str, str] = {}
    memory: int | None = None
    shm: int | None = None
    nofile: int | None = None
    memlock: int | None = None
    pids: int | None = None
    cpus: float | None = None


class Ulimit(NamedTuple):
    """What a shell is told of a limit: its letter, ``S``, ``H`` or both, and the value."""

    letter: str
    bounds: str
    value: str
    where: str


class Words(NamedTuple):
    """What one text says."""

    facts: tuple[Fact, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    stated: tuple[Stated, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    library: str = ""
    """Whose loop draws the batches, where the words show it."""
    ulimits: tuple[Ulimit, ...] = ()
    is_job: bool = False
    """Whether a scheduler will choose where it runs."""


def join_path(folder: str, path: str) -> str:
    """Return a path that begins in a folder, without ``.`` and ``..``."""
    whole = path if path.startswith("/") else f"{folder}/{path}"
    parts: list[str] = []
    for part in whole.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return f"{'/' * whole.startswith('/')}{'/'.join(parts)}"


def join_words(parts: list[Words]) -> Words:
    """Return what several texts say together, in order."""
    return Words(
        tuple(fact for part in parts for fact in part.facts),
        tuple(dict.fromkeys(one for part in parts for one in part.wanted)),
        tuple(one for part in parts for one in part.stated),
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        tuple(dict.fromkeys(one for part in parts for one in part.problems)),
        max((part.library for part in parts), key=_LIBRARIES.index, default=""),
        tuple(one for part in parts for one in part.ulimits),
        any(part.is_job for part in parts),
    )
