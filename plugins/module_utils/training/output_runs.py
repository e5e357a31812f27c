# SPDX-License-Identifier: BSD-2-Clause
"""Tell which processes are another run in an output directory, and judge that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from ..core.values import NamedTuple
from .folder_rules import blame, place_of

_TRAINS = re.compile(
    r"python[0-9.]*|pt_main_thread|torchrun|accelerate|deepspeed|pt_elastic|ray::.*"
)
_ONLOOKERS = (
    *("tensorboard", "jupyter.*", "ipykernel", "ipykernel_launcher", "ipython3?", "mlflow", "aim"),
    *("wandb.*", "visdom", "http\\.server", "SimpleHTTPServer", "uvicorn", "gunicorn", "hypercorn"),
    *("flask", "streamlit", "gradio", "waitress", "pip[0-9.]*", "pdb", "pylsp", "jedi.*", "dvc"),
    *("mlhost-limits", "mlhost_limits", "ansible.*", "rclone", "gsutil", "aws"),
)
_ONLOOKER = re.compile(rf"(?:{'|'.join(_ONLOOKERS)})(?:\.[a-z_.]+)?|.*AnsiballZ.*")
"""Programs and modules of Python's that look on, serve or copy what a run writes."""

_OF_CHECKPOINT = re.compile(
    r"(?:.*/)?(?:(?:tmp-)?checkpoint-[0-9]+/.*|global_step[^/]*/.*|trainer_state\.json[^/]*"
    r"|[^/]*\.(?:safetensors|pt|pth|ckpt|distcp))"
)
_SHELLS = ("bash", "dash", "fish", "ksh", "sh", "tmux: server", "screen", "zsh", "sshd", "systemd")
_SHOWN = 5
_NAMES_IT = "names it on its command line"


class Process(NamedTuple):
    """A process: its parent, its name, its command line, the directory it works in, and whose.

    ``group`` is its process group: a shell puts each pipeline in one.
    """

    parent: int
    name: str
    words: tuple[str, ...] = ()
    folder: str = ""
    user: str = ""
    group: int = 0


class Run(NamedTuple):
    """A process of another run, what shows it, and whose it is."""

    pid: int
    name: str
    how: str
    user: str = ""


def find_runs(
    path: str,
    processes: Mapping[int, Process],
    writers: Mapping[int, str],
    own: int,
    may_work: Callable[[str], bool] = lambda _user: True,
) -> Iterator[Run]:
    """Yield the processes that work in a directory, without those of the run that asks.

    :param path: Its real path.
    :param writers: A file below it that a process has open for writing, by pid.
    :param own: The pid of whoever asks. What it descends from, and what descends from it or from
        the program that started it, belongs to it; a shell starts runs that are not one.
    :param may_work: Tells whether a user's processes can be runs there; a name alone shows none.
    """
    family = _find_ancestors(own, processes)
    roots, nobody = {own}, Process(0, "")
    me = processes.get(own, nobody)
    if processes.get(me.parent, nobody).name not in _SHELLS:
        roots.add(me.parent)
    for pid, process in sorted(processes.items()):
        if pid in family or roots & set(_find_ancestors(pid, processes)):
            continue
        how = _find_reason(path, process, writers.get(pid, ""), may_work)
        # A script starts its runs in its own group, too: of a pipeline none names the directory.
        is_of_pipeline = me.group and process.group == me.group and how != _NAMES_IT
        if how and (saves(writers.get(pid, "")) or not is_of_pipeline):
            yield Run(pid, process.name, how, process.user)


def _find_reason(path: str, process: Process, written: str, may_work: Callable[[str], bool]) -> str:
    """Return what shows that a process is a run in a directory; nothing where nothing does."""
    trains = _trains(process)
    if written:
        return f"writes {written}" if trains or saves(written[len(path) :]) else ""
    if not trains or not may_work(process.user):
        return ""
    if _lies_in(process.folder, path):
        return f"works in {process.folder}"
    named = any(_lies_in(word.partition("=")[2] or word, path) for word in process.words)
    return _NAMES_IT if named else ""


def saves(path: str) -> bool:
    """Tell whether a file, by its path below the directory, is one of a checkpoint."""
    return bool(_OF_CHECKPOINT.fullmatch(path.lstrip("/")))


def _find_ancestors(pid: int, processes: Mapping[int, Process]) -> list[int]:
    """Return a process and those it descends from, process 1 left out."""
    found: list[int] = []
    while pid > 1 and pid in processes and pid not in found:
        found.append(pid)
        pid = processes[pid].parent
    return found


def _trains(process: Process) -> bool:
    """Tell whether a program of Python's does more than look on."""
    names = [word.rpartition("/")[2] for word in process.words]
    if not any(_TRAINS.fullmatch(name) for name in (process.name, *names[:1])):
        return False
    return not any(map(_ONLOOKER.fullmatch, [process.name, *_find_program(names)]))


def _find_program(names: list[str]) -> list[str]:
    """Return what Python runs: a module after -m, or a script."""
    rest = names[1:]
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        rest = rest[2:] if rest[0] in ("-X", "-W") else rest[1:]
    return rest[1:2] if rest[:1] == ["-m"] else rest[:1]


def _lies_in(path: str, folder: str) -> bool:
    return path.rstrip("/") == folder or path.startswith(f"{folder}/")


def judge_runs(path: str, runs: list[Run], sees_all: bool, owner: str = "") -> Finding:
    """Say whether another run works in the directory.

    :param sees_all: Whether a run of any user who may write there would have been seen.
    :param owner: Whose runs they are, where somebody else's stand in the way.
    """
    wanted = Requirement(place_of(path), "other runs", "value", exact="none")
    how = "/proc/PID/fd, cwd and cmdline"
    if runs:
        told = ", ".join(f"{run.name} (pid {run.pid}) {run.how}" for run in runs[:_SHOWN])
        more = f", and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
        fix = "wait until it has ended, or name another directory"
        cause = blame("output-in-use", f"{told}{more}", fix)
        pids = ", ".join(str(run.pid) for run in runs[:_SHOWN])
        seen = Observation(f"pid {pids}{more}", how)
        return Finding(FAIL, wanted, seen, (cause,), owner=owner)
    if not sees_all:
        reason = "others may write there, and only root sees what their processes have open"
        return Finding(UNKNOWN, wanted, Observation(None, how, reason))
    return Finding(PASS, wanted, Observation("none", how))
