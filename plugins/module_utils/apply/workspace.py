# SPDX-License-Identifier: BSD-2-Clause
"""Make the directory of a workspace, mount its tmpfs, and move damaged files of it aside."""

from __future__ import annotations

import contextlib
import os

from ..policy.file_verdict import QUARANTINE
from ..probe.program import run_program
from .replace import find_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_TIME_LIMIT = 60.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_directory(path: str, uid: int, gid: int, mode: int) -> None:
    """Make a directory, and those above it, and give it its owner and mode.

    :raises OSError: If others than root may write on the way to it, or it is something else.
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
    """Remove a directory in which nothing is left."""
    with contextlib.suppress(OSError):
        os.rmdir(path)


def mount_tmpfs(path: str, options: str, again: bool) -> str:
    """Mount a tmpfs; return why that failed, or nothing.

    :param again: Whether it is mounted and gets other options; what is in it stays.
    """
    options = f"remount,{options}" if again else options
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", path]
    status, text = run_program(words, _TIME_LIMIT)
    return f"{path} could not be mounted: {' '.join(text.split())}" if status else ""


def unmount(path: str) -> str:
    """Unmount a directory; return why that failed, or nothing."""
    status, text = run_program(["umount", path], _TIME_LIMIT)
    return f"{path} could not be unmounted: {' '.join(text.split())}" if status else ""


def move_aside(path: str, names: Iterable[str]) -> list[str]:
    """Move files below a directory to its quarantine by rename; nothing is ever removed.

    Every step is relative to an open folder and follows no link, so that whoever may write there
    cannot lead it elsewhere.

    :returns: The names that were moved; one that is gone meanwhile is not among them.
    :raises OSError: If the quarantine is somebody else's.
    """
    top = os.open(path, _FOLDER)
    try:
        aside = _open_quarantine(top)
        try:
            return [name for name in names if _move(top, aside, name)]
        finally:
            os.close(aside)
    finally:
        os.close(top)


def _open_quarantine(top: int) -> int:
    owner = os.fstat(top)
    with contextlib.suppress(FileExistsError):
        os.mkdir(QUARANTINE, 0o700, dir_fd=top)
    aside = os.open(QUARANTINE, _FOLDER, dir_fd=top)
    found = os.fstat(aside)
    if found.st_uid not in (os.geteuid(), owner.st_uid):
        os.close(aside)
        raise OSError(f"{QUARANTINE}: was made by uid {found.st_uid}, and is not used")
    return aside


def _move(top: int, aside: int, name: str) -> bool:
    *folders, last = name.split("/")
    here = os.dup(top)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        free = name.replace("/", "__")
        while _is_there(aside, free):
            free += "~"
        os.rename(last, free, src_dir_fd=here, dst_dir_fd=aside)
    except OSError:
        return False
    finally:
        os.close(here)
    return True


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
