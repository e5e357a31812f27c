# SPDX-License-Identifier: BSD-2-Clause
"""Make the directory of a workspace, and mount its tmpfs."""

from __future__ import annotations

import contextlib
import os

from ..host.program import run_program
from ..write.replace import find_target

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
    """Remove a directory in which nothing is left, unless others may write on the way to it."""
    with contextlib.suppress(OSError):
        os.rmdir(find_target(path))


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
