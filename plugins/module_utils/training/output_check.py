# SPDX-License-Identifier: BSD-2-Clause
"""Judge the output directory of a run: can it save there, resume from there, and is it alone."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from functools import partial
from itertools import islice

from ..core.finding import FAIL, UNKNOWN, Finding, Observation
from ..core.folder_states import ABSENT, DIRECTORY
from ..host.door import list_pids
from ..host.files import read_text
from ..host.marks import read_link
from ..host.open_directory import ObstacleError, open_directory
from ..host.users import name_owners, name_user
from .cache_check import look_above, look_there, looks_as_runner
from .cache_open_read import CLOSED_END
from .checkpoint_read import read_contents
from .checkpoints import (
    STATE,
    Checkpoint,
    blame_none,
    count_copies,
    find_number,
    judge_checkpoints,
    require_usable,
)
from .folder_measure import find_actor, run_there
from .folder_rules import FolderFacts, judge_absent, judge_folder, judge_free, may_work_there
from .open_files_read import find_open_files, find_writers_below
from .output_runs import Process, find_runs, judge_runs, saves
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
    # A run makes its own: transformers does.
    above = look_above(facts, training, _PROOFS) if facts.state == ABSENT else None
    if above is not None:
        facts = above._replace(path=path)
        yield from judge_absent(facts, above.path)
    else:
        yield from judge_folder(facts)
    checkpoints: list[Checkpoint] = []
    if facts.state == DIRECTORY and above is None:
        try:
            checkpoints = _read_with_writers(path, facts, looks_as_runner(training))
            yield from _judge_checkpoints(facts, checkpoints, training)
        except OSError as exc:
            yield Finding(UNKNOWN, require_usable(path), Observation(None, "", f"{path}: {exc}"))
        yield _judge_others(facts)
    elif training.resume:
        cause = blame_none(path)
        yield Finding(FAIL, require_usable(path), Observation("none", cause.text), (cause,))
    size = training.checkpoint_size
    copies = count_copies(checkpoints, training.save_total_limit)
    yield from judge_free(facts, None if size is None else size * copies, None)


def _judge_checkpoints(
    facts: FolderFacts, checkpoints: list[Checkpoint], training: Training
) -> Iterator[Finding]:
    actor = find_actor(facts, [f"{facts.path}/entry"])
    limit, resumes = training.save_total_limit, training.resume
    yield from judge_checkpoints(facts.path, checkpoints, limit, resumes, actor)


def _read_with_writers(path: str, facts: FolderFacts, as_runner: bool) -> list[Checkpoint]:
    """Return the checkpoints; what seems damaged and is open for writing is not done yet.

    :param as_runner: Whether who looks is who will run: what another may not read, root may.
    :raises OSError: If the directory cannot be read.
    """
    checkpoints = read_checkpoints(path, facts.uid)
    if not checkpoints or not checkpoints[-1].damaged:
        return checkpoints
    newest = checkpoints[-1]
    if not as_runner:
        closed = tuple(one for one in newest.damaged if one[1].endswith(CLOSED_END))
        broken = tuple(one for one in newest.damaged if one not in closed)
        newest = newest._replace(damaged=broken, unsure=(*closed, *newest.unsure))
    below = f"{newest.name}/" if not newest.title else ""
    pids = [
        pid for name, pid in find_writers_below(facts.real_path).items() if name.startswith(below)
    ]
    if pids:
        unsure = ("", f"is being written by pid {pids[0]}")
        newest = newest._replace(damaged=(), unsure=(unsure, *newest.unsure))
    return [*checkpoints[:-1], newest]


def _judge_others(facts: FolderFacts) -> Finding:
    writers, may_work = find_writers(facts.real_path), partial(may_work_there, facts)
    runs = list(find_runs(facts.real_path, read_processes(), writers, os.getpid(), may_work))
    of_run = ("", "root", facts.user)
    owner = name_owners(["" if run.user in of_run else run.user for run in runs])
    return judge_runs(facts.path, runs, os.geteuid() == 0 or not facts.mode & _OTHERS, owner)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TIME_LIMIT = 30.0
_UID = re.compile(r"^Uid:\s+([0-9]+)", re.MULTILINE)
_MOST_NAMES = 100_000
_MOST_CHECKPOINTS = 1000
_TOLD = 8  # Names of a checkpoint that are passed on, and damaged files.
_LATEST = "latest"


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
            tuple(map(str, names)),
            float(changed),
            tuple((str(name), str(reason)) for name, reason in damaged),
            tuple((str(name), str(reason)) for name, reason in unsure),
            tuple(map(str, lost)),
            str(title),
        )
        for number, is_directory, names, changed, damaged, unsure, lost, title in report.value
    ]


def _read_all(path: str) -> list[Checkpoint] | str:
    """Return the checkpoints, or why they cannot be read. Runs in a child."""
    try:
        top = open_directory(path)
        listed = os.open(".", _FOLDER, dir_fd=top)
        names = _list(listed)
        found = map(find_number, names)
        numbers = sorted(number for number in found if number is not None)[-_MOST_CHECKPOINTS:]
        if not numbers and _LATEST in names:  # What DeepSpeed saves by itself.
            one = Checkpoint(0, True, _pick(names), title=_LATEST)
            return [_add_contents(one, listed)]
        folders = [_read(listed, number) for number in numbers]
        return folders[:-1] + [_read_newest(listed, one) for one in folders[-1:]]
    except ObstacleError as obstacle:
        return obstacle.reason
    except OSError as exc:
        return f"[Errno {exc.errno}] {exc.strerror}"


def _list(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, _MOST_NAMES)]


def _read(parent: int, number: int) -> Checkpoint:
    one = Checkpoint(number)
    folder = _open_checkpoint(parent, one.name)
    if folder is None:
        return one._replace(is_directory=False)
    try:
        names = sorted(_list(folder))
        changed = os.fstat(folder).st_mtime
        if STATE in names:
            changed = os.stat(STATE, dir_fd=folder, follow_symlinks=False).st_mtime
    finally:
        os.close(folder)
    return one._replace(names=_pick(names), changed=changed)


def _open_checkpoint(parent: int, name: str) -> int | None:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except OSError:
        if not _leads_to_a_directory(parent, name):
            return None
        return os.open(name, _FOLDER & ~os.O_NOFOLLOW, dir_fd=parent)


def _read_newest(parent: int, one: Checkpoint) -> Checkpoint:
    folder = _open_checkpoint(parent, one.name)
    if folder is None or not one.names:
        return one
    try:
        return _add_contents(one, folder)
    finally:
        os.close(folder)


def _add_contents(one: Checkpoint, folder: int) -> Checkpoint:
    found = read_contents(folder)
    damaged, unsure = tuple(found.broken[:_TOLD]), tuple(found.unsure[:_TOLD])
    return one._replace(damaged=damaged, unsure=unsure, lost=tuple(found.lost))


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
            parent, group = map(int, rest.split()[1:3])
            found[int(entry)] = Process(parent, name, words, folder, user, group)
    return found


def find_writers(path: str, proc: str = "/proc") -> dict[int, str]:
    """Return a file that each process has open for writing below a directory.

    Of several it is one of a checkpoint.
    """
    found: dict[int, str] = {}
    for one in find_open_files(path, proc):
        if one.writes and (one.pid not in found or saves(one.path[len(path) :])):
            found[one.pid] = one.path
    return found
