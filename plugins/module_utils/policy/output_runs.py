# SPDX-License-Identifier: BSD-2-Clause
"""Tell which processes are another run in an output directory, and judge that."""

from __future__ import annotations

import re
from typing import NamedTuple

from .finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from .folder_rules import place_of
from .workspace_causes import blame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TRAINS = re.compile(
    r"python[0-9.]*|pt_main_thread|torchrun|accelerate|deepspeed|pt_elastic|ray::.*"
)
_NEVER_ONE = re.compile(r"tensorboard|jupyter|mlhost-limits|mlhost_limits|ansible|AnsiballZ")
_SHELLS = ("bash", "dash", "fish", "ksh", "sh", "tmux: server", "screen", "zsh", "sshd", "systemd")
_SHOWN = 5


class Process(NamedTuple):
    """A process: its parent, its name, its command line and the directory it works in."""

    parent: int
    name: str
    words: tuple[str, ...] = ()
    folder: str = ""


class Run(NamedTuple):
    """A process of another run, and what shows it."""

    pid: int
    name: str
    how: str


def find_runs(
    path: str, processes: Mapping[int, Process], writers: Mapping[int, str], own: int
) -> Iterator[Run]:
    """Yield the processes that work in a directory, without those of the run that asks.

    :param path: Its real path.
    :param writers: A file below it that a process has open for writing, by pid.
    :param own: The pid of whoever asks. What it descends from, and what descends from it or from
        the program that started it, belongs to it; a shell starts runs that are not one.
    """
    family = _find_ancestors(own, processes)
    roots = {own}
    parent = processes.get(own, Process(0, "")).parent
    if parent > 1 and processes.get(parent, Process(0, "")).name not in _SHELLS:
        roots.add(parent)
    for pid, process in sorted(processes.items()):
        if pid in family or roots & set(_find_ancestors(pid, processes)):
            continue
        if pid in writers:
            yield Run(pid, process.name, f"writes {writers[pid]}")
        elif _trains(process):
            if _lies_in(process.folder, path):
                yield Run(pid, process.name, f"works in {process.folder}")
            elif any(_lies_in(word.partition("=")[2] or word, path) for word in process.words):
                yield Run(pid, process.name, "names it on its command line")


def _find_ancestors(pid: int, processes: Mapping[int, Process]) -> list[int]:
    """Return a process and those it descends from, process 1 left out."""
    found: list[int] = []
    while pid > 1 and pid in processes and pid not in found:
        found.append(pid)
        pid = processes[pid].parent
    return found


def _trains(process: Process) -> bool:
    said = " ".join(process.words[:4])
    return bool(_TRAINS.fullmatch(process.name)) and not _NEVER_ONE.search(said)


def _lies_in(path: str, folder: str) -> bool:
    return path.rstrip("/") == folder or path.startswith(f"{folder}/")


def judge_runs(path: str, runs: list[Run], sees_all: bool) -> Finding:
    """Say whether another run works in the directory.

    :param sees_all: Whether a run of any user who may write there would have been seen.
    """
    wanted = Requirement(place_of(path), "other runs", "value", exact="none")
    how = "/proc/PID/fd, cwd and cmdline"
    if runs:
        told = ", ".join(f"{run.name} (pid {run.pid}) {run.how}" for run in runs[:_SHOWN])
        more = f", and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
        fix = "wait until it has ended, or name another directory"
        cause = blame("output-in-use", f"{told}{more}", fix)
        pids = ", ".join(str(run.pid) for run in runs[:_SHOWN])
        return Finding(FAIL, wanted, Observation(f"pid {pids}{more}", how), (cause,))
    if not sees_all:
        reason = "others may write there, and only root sees what their processes have open"
        return Finding(UNKNOWN, wanted, Observation(None, how, reason))
    return Finding(PASS, wanted, Observation("none", how))
