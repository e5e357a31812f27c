# SPDX-License-Identifier: BSD-2-Clause
"""Judge the output directory of a run: can it save there, resume from there, and is it alone."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from functools import partial
from itertools import islice

from ..core.finding import UNKNOWN, Finding, Observation, Requirement
from ..core.folder_states import DIRECTORY
from ..host.door import list_pids
from ..host.files import read_text
from ..host.marks import read_link
from ..host.open_directory import ObstacleError, open_directory
from ..host.users import name_owners, name_user
from .cache_check import look_there
from .cache_read import check_open_file
from .checkpoints import STATE, Checkpoint, count_copies, find_number, judge_checkpoints
from .file_verdict import CORRUPT
from .folder_measure import find_actor, run_there
from .folder_rules import FolderFacts, judge_folder, judge_free, may_work_there, place_of
from .open_files_read import find_open_files
from .output_runs import Process, find_runs, judge_runs
from .policy import Training

_PROOFS = ("rename", "directory rename")
_OTHERS = 0o022


def check_output(training: Training) -> Iterator[Finding]:
    """Yield what a run finds at its output directory, looked at as the user who will run."""
    path = training.output_dir
    if path is None:
        return
    facts = look_there(path, training, _PROOFS)
    if isinstance(facts, Finding):
        yield facts
        return
    yield from judge_folder(facts)
    checkpoints: list[Checkpoint] = []
    if facts.state == DIRECTORY:
        try:
            checkpoints = read_checkpoints(path, facts.uid)
            limit, resumes = training.save_total_limit, training.resume
            actor = find_actor(facts, [f"{path}/entry"])
            yield from judge_checkpoints(path, checkpoints, limit, resumes, actor)
        except OSError as exc:
            wanted = Requirement(place_of(path), "checkpoints", "value", exact="usable")
            yield Finding(UNKNOWN, wanted, Observation(None, "", f"{path}: {exc}"))
        yield _judge_others(facts)
    if training.checkpoint_size is not None:
        copies = count_copies(checkpoints, training.save_total_limit)
        yield from judge_free(facts, training.checkpoint_size * copies, None)


def _judge_others(facts: FolderFacts) -> Finding:
    writers, may_work = find_writers(facts.real_path), partial(may_work_there, facts)
    runs = list(find_runs(facts.real_path, read_processes(), writers, os.getpid(), may_work))
    of_run = ("", "root", facts.user)
    owner = name_owners(["" if run.user in of_run else run.user for run in runs])
    return judge_runs(facts.path, runs, os.geteuid() == 0 or not facts.mode & _OTHERS, owner)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_TIME_LIMIT = 30.0
_UID = re.compile(r"^Uid:\s+([0-9]+)", re.MULTILINE)
_MOST_NAMES = 100_000
_MOST_CHECKPOINTS = 1000
_TOLD = 8  # Names of a checkpoint that are passed on, and damaged files.
_ENDING = ".bin"  # pytorch_model.bin and its like are what torch.save writes.


def read_checkpoints(path: str, uid: int) -> list[Checkpoint]:
    """Return every entry named like a checkpoint; the files of the newest are looked into.

    A user looks at what is that user's; for root, whose the directory is.

    :raises OSError: If the directory cannot be read.
    """
    report = run_there(uid, path, partial(_read_all, path), _TIME_LIMIT)
    if report.problem:
        raise OSError(report.problem)
    if isinstance(report.value, str):
        raise OSError(report.value)
    return [
        Checkpoint(
            int(number),
            bool(is_directory),
            tuple(names),
            float(changed),
            tuple((str(name), str(reason)) for name, reason in damaged),
        )
        for number, is_directory, names, changed, damaged in report.value
    ]


def _read_all(path: str) -> list[Checkpoint] | str:
    """Return the checkpoints, or why they cannot be read. Runs in a child."""
    try:
        top = open_directory(path)
        listed = os.open(".", _FOLDER, dir_fd=top)
        found = map(find_number, _list(listed))
        numbers = sorted(number for number in found if number is not None)[-_MOST_CHECKPOINTS:]
        return [_read(listed, number, number == numbers[-1]) for number in numbers]
    except ObstacleError as obstacle:
        return obstacle.reason
    except OSError as exc:
        return f"[Errno {exc.errno}] {exc.strerror}"


def _list(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, _MOST_NAMES)]


def _read(parent: int, number: int, is_newest: bool) -> Checkpoint:
    name = f"checkpoint-{number}"
    try:
        folder = os.open(name, _FOLDER, dir_fd=parent)
    except OSError:
        if not _leads_to_a_directory(parent, name):
            return Checkpoint(number, is_directory=False)
        folder = os.open(name, _FOLDER & ~os.O_NOFOLLOW, dir_fd=parent)
    try:
        names = sorted(_list(folder))
        changed = os.fstat(folder).st_mtime
        if STATE in names:
            changed = os.stat(STATE, dir_fd=folder, follow_symlinks=False).st_mtime
        damaged = tuple(islice(_find_damaged(folder, names), _TOLD)) if is_newest else ()
    finally:
        os.close(folder)
    return Checkpoint(number, True, _pick(names), changed, damaged)


def _pick(names: list[str]) -> tuple[str, ...]:
    """Return the names of a checkpoint that something is made of: its state, and a few."""
    shown = [name for name in names if not name.startswith(".")]
    state = [name for name in shown if name == STATE]
    return tuple(sorted({*state, *shown[:_TOLD], *names[:_TOLD]}))


def _leads_to_a_directory(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent).st_mode)
    except OSError:
        return False


def _find_damaged(folder: int, names: list[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            handle = _open_file(folder, name)
        except OSError:
            continue
        if handle is None:
            continue
        try:
            known = f"{name}.pt" if name.endswith(_ENDING) else name
            verdict = check_open_file(handle, known)
        except (OSError, MemoryError):
            continue
        finally:
            os.close(handle)
        if verdict is not None and verdict.status == CORRUPT:
            yield name, verdict.reason


def _open_file(folder: int, name: str) -> int | None:
    """Open a regular file; nothing else is opened, because that can have effects."""
    seen = os.open(name, _LOOK, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(seen).st_mode):
            return None
        return os.open(f"/proc/self/fd/{seen}", _FILE)
    finally:
        os.close(seen)


def read_processes(proc: str = "/proc") -> dict[int, Process]:
    """Return every process; what belongs to others shows its directory to root alone."""
    found = {}
    for entry in list_pids(proc):
        try:
            text = read_text(f"{proc}/{entry}/stat") or ""
            line = read_text(f"{proc}/{entry}/cmdline") or ""
            uid = _UID.search(read_text(f"{proc}/{entry}/status") or "")
        except OSError:
            continue
        head, _mark, rest = text.rpartition(")")
        if head:
            name, words = head.partition("(")[2], tuple(line.split("\0"))
            folder = read_link(f"{proc}/{entry}/cwd")
            user = name_user(int(uid[1])) if uid else ""
            found[int(entry)] = Process(int(rest.split()[1]), name, words, folder, user)
    return found


def find_writers(path: str, proc: str = "/proc") -> dict[int, str]:
    """Return a file that each process has open for writing below a directory."""
    return {one.pid: one.path for one in find_open_files(path, proc) if one.writes}
