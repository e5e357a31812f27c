# SPDX-License-Identifier: BSD-2-Clause
"""Make the folder of a workspace, and move damaged files aside by rename: none is ever removed.

Files are moved by the user whose directory it is: root becomes that user. In a directory of root's,
root moves what is root's, and counts what is others'.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from functools import partial

from ..core.values import NamedTuple
from ..host.open_directory import ObstacleError, is_there
from ..host.program import run_program
from ..host.scratch import OPEN_FOLDER
from ..training.cache_read import check_files, look_again
from ..training.file_verdict import CLOSED, CORRUPT, QUARANTINE, UNSEEN
from ..training.folder_measure import run_there
from ..training.open_files_read import find_writers_below
from ..write.replace import find_target

_TIME_LIMIT = 600.0
_MOST_BYTES = 50_000  # Of the names in an answer.


class Aside(NamedTuple):
    """The first names that were, or would be, moved, how many there are, and what is to be said."""

    names: tuple[str, ...]
    number: int
    notes: tuple[str, ...]


def quarantine(path: str, check_mode: bool) -> Aside:
    """Move damaged files that nobody is writing to the quarantine below a directory.

    :param path: No link of somebody else may be on the way to it.
    """
    written = frozenset(find_writers_below(os.path.realpath(path)))
    task = partial(_quarantine, path, written, check_mode)
    report = run_there(os.geteuid(), path, task, _TIME_LIMIT)
    if report.problem:
        return Aside((), 0, (f"{path}: its files were not looked at: {report.problem}",))
    names, number, notes = report.value
    return Aside(tuple(map(str, names)), int(number), tuple(map(str, notes)))


def _quarantine(path: str, written: frozenset[str], check_mode: bool) -> tuple[object, ...]:
    """Look at the files and move what is damaged. Runs in a child."""
    seeming, unseen = [], 0
    try:
        for one in check_files(path):
            unseen += one.status in (UNSEEN, CLOSED)
            if one.status == CORRUPT and one.path not in written:
                seeming.append(one)
        damaged = [one.path for one in look_again(path, seeming) if one.status == CORRUPT]
        moved = list(damaged) if check_mode or not damaged else move_aside(path, damaged)
    except ObstacleError as obstacle:
        return (), 0, [f"{path}: its files were not looked at: {obstacle.reason}"]
    except OSError as exc:
        return (), 0, [f"{path}: nothing was moved: {exc}"]
    return _shorten(moved), len(moved), list(_describe(path, moved, unseen))


def _describe(path: str, moved: list[str], unseen: int) -> Iterator[str]:
    if unseen:
        what = "1 file or directory was" if unseen == 1 else f"{unseen} files or directories were"
        yield f"{path}: {what} not looked at; mlhost-limits check says why"
    more = len(moved) - len(_shorten(moved))
    if more:
        yield f"{path}: {more} more damaged files are not named here"


def _shorten(names: list[str]) -> list[str]:
    size, kept = 0, []
    for name in names:
        size += len(name)
        if size > _MOST_BYTES:
            break
        kept.append(name)
    return kept


def move_aside(path: str, names: Iterable[str]) -> list[str]:
    """Move files below a directory to its quarantine by rename.

    Every step is relative to an open folder and follows no link, so that whoever may write there
    cannot lead it elsewhere.

    :returns: The names that were moved; one that is gone meanwhile is not among them.
    :raises OSError: If the quarantine is somebody else's.
    """
    top = os.open(path, OPEN_FOLDER)
    try:
        aside = _open_quarantine(top)
        try:
            return [name for name in names if _move(top, aside, name)]
        finally:
            os.close(aside)
    finally:
        os.close(top)


def _open_quarantine(top: int) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(QUARANTINE, 0o700, dir_fd=top)
    aside = os.open(QUARANTINE, OPEN_FOLDER, dir_fd=top)
    found = os.fstat(aside)
    trouble = ""
    if found.st_uid != os.geteuid():
        trouble = f"was made by uid {found.st_uid}"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        trouble = "can be opened by other users"
    if trouble:
        os.close(aside)
        raise OSError(f"{QUARANTINE}: {trouble}, and is not used")
    return aside


def _move(top: int, aside: int, name: str) -> bool:
    *folders, last = name.split("/")
    here = os.dup(top)
    try:
        for folder in folders:
            below = os.open(folder, OPEN_FOLDER, dir_fd=here)
            os.close(here)
            here = below
        free = name.replace("/", "__")
        while is_there(aside, free):
            free += "~"
        os.rename(last, free, src_dir_fd=here, dst_dir_fd=aside)
    except OSError:
        return False
    finally:
        os.close(here)
    return True


_MOUNT_LIMIT = 60.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_directory(path: str, uid: int, gid: int, mode: int) -> None:
    """Make a directory, and those above it, and give it its owner and mode.

    :raises OSError: If users other than root may write on the way to it, or it is something else.
    """
    target = find_target(path)
    os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(target, 0o700)
    folder = os.open(target, _FOLDER)
    try:
        os.fchown(folder, uid, gid)
        os.fchmod(folder, mode)
    finally:
        os.close(folder)


def remove_directory(path: str) -> None:
    """Remove a directory in which nothing is left, unless others may write on the way to it."""
    with contextlib.suppress(OSError):
        os.rmdir(find_target(path))


def mount_tmpfs(path: str, options: str, again: bool) -> str:
    """Mount a tmpfs; return why that failed, or nothing.

    :param again: Whether it is mounted and gets other options; what is in it stays.
    """
    options = f"remount,{options}" if again else options
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", path]
    status, text = run_program(words, _MOUNT_LIMIT)
    return f"{path} could not be mounted: {' '.join(text.split())}" if status else ""


def unmount(path: str) -> str:
    """Unmount a directory; return why that failed, or nothing."""
    status, text = run_program(["umount", path], _MOUNT_LIMIT)
    return f"{path} could not be unmounted: {' '.join(text.split())}" if status else ""
