# SPDX-License-Identifier: BSD-2-Clause
"""Look at an output directory: its checkpoints, and the processes that work in it."""

from __future__ import annotations

import os
import stat

from ..policy.checkpoints import STATE, Checkpoint, find_number
from ..policy.file_verdict import CORRUPT
from ..policy.output_runs import Process
from .cache_files import check_open_file
from .directory import open_directory
from .files import read_text
from .open_files import find_open_files

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ENDING = ".bin"  # pytorch_model.bin and its like are what torch.save writes.


def read_checkpoints(path: str) -> list[Checkpoint]:
    """Return every entry named like a checkpoint; the files of the newest are looked into.

    :raises ObstacleError: If the directory cannot be opened.
    :raises OSError: If it cannot be read.
    """
    top = open_directory(path)
    try:
        listed = os.open(".", _FOLDER, dir_fd=top)
    finally:
        os.close(top)
    try:
        found = map(find_number, os.listdir(listed))
        numbers = sorted(number for number in found if number is not None)
        return [_read(listed, number, number == numbers[-1]) for number in numbers]
    finally:
        os.close(listed)


def _read(parent: int, number: int, is_newest: bool) -> Checkpoint:
    name = f"checkpoint-{number}"
    try:
        folder = os.open(name, _FOLDER, dir_fd=parent)
    except OSError:
        if not _leads_to_a_directory(parent, name):
            return Checkpoint(number, is_directory=False)
        folder = os.open(name, _FOLDER & ~os.O_NOFOLLOW, dir_fd=parent)
    try:
        names = tuple(sorted(os.listdir(folder)))
        changed = os.fstat(folder).st_mtime
        if STATE in names:
            changed = os.stat(STATE, dir_fd=folder, follow_symlinks=False).st_mtime
        damaged = tuple(_find_damaged(folder, names)) if is_newest else ()
    finally:
        os.close(folder)
    return Checkpoint(number, True, names, changed, damaged)


def _leads_to_a_directory(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent).st_mode)
    except OSError:
        return False


def _find_damaged(folder: int, names: tuple[str, ...]) -> list[tuple[str, str]]:
    found = []
    for name in names:
        try:
            handle = os.open(name, _FILE, dir_fd=folder)
        except OSError:
            continue
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                continue
            known = f"{name}.pt" if name.endswith(_ENDING) else name
            verdict = check_open_file(handle, known)
        finally:
            os.close(handle)
        if verdict is not None and verdict.status == CORRUPT:
            found.append((name, verdict.reason))
    return found


def read_processes(proc: str = "/proc") -> dict[int, Process]:
    """Return every process; what belongs to others shows its directory to root alone."""
    found = {}
    for entry in os.listdir(proc):
        if not entry.isdigit():
            continue
        try:
            text = read_text(f"{proc}/{entry}/stat") or ""
            line = read_text(f"{proc}/{entry}/cmdline") or ""
        except OSError:
            continue
        head, _mark, rest = text.rpartition(")")
        if head:
            name, words = head.partition("(")[2], tuple(line.split("\0"))
            folder = _read_folder(f"{proc}/{entry}/cwd")
            found[int(entry)] = Process(int(rest.split()[1]), name, words, folder)
    return found


def _read_folder(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def find_writers(path: str, proc: str = "/proc") -> dict[int, str]:
    """Return a file that each process has open for writing below a directory."""
    return {one.pid: one.path for one in find_open_files(path, proc) if one.writes}
