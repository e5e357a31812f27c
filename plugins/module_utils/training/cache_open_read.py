# SPDX-License-Identifier: BSD-2-Clause
"""Open a file of a user's in a folder that is held open; what is not a file is never opened.

Links to files are followed, once what they lead to is known to be a file. Nothing is opened for
writing. Root opens what is root's, and says of all else whose it is.
"""

from __future__ import annotations

import os
import stat
import time

from ..core.folder_states import ABSENT
from ..host.open_directory import ObstacleError, open_directory
from ..host.users import name_user

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_TARGET = os.O_PATH | os.O_CLOEXEC
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NoFileError(Exception):
    """What has the name is not a file; the text says what it is."""


CLOSED_END = ": Permission denied"
"""What the reason ends with why a user may not read a file."""

YOUNG = 3.0
"""Seconds for which a file that nobody changes may still be under way."""
PAUSE = 0.5
"""Seconds at least between two looks: the clock of a file server may be another."""


def is_young(changed: float) -> bool:
    """Tell whether something was changed so lately that its writer may not be done."""
    return abs(time.time() - changed) < YOUNG * 0.99


def wait_for(changed: float) -> None:
    """Wait until what was changed last is not young any more; at least as long as two looks want.

    :param changed: When it was, in seconds, by the clock of its file system.
    """
    time.sleep(max(PAUSE, min(YOUNG, changed + YOUNG - time.time())))


def open_regular(folder: int, name: str, trusts: bool = False, is_file: bool = False) -> int:
    """Open a regular file of a folder for reading.

    :param trusts: Whether root opens what is others', as a program of a run does.
    :param is_file: Whether the folder says that it is one.
    :raises NoFileError: If it is something else; that is not opened, because that can have effects.
    :raises ObstacleError: If root asks, and it is somebody else's.
    :raises FileNotFoundError, PermissionError, OSError: As open(2) would say.
    """
    handle = _open(folder, name, trusts, is_file)
    whose = "" if trusts else find_stranger(handle)
    if whose:
        os.close(handle)
        raise ObstacleError("", name, whose)
    return handle


def _open(folder: int, name: str, trusts: bool, is_file: bool) -> int:
    mode = 0 if is_file else os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if is_file or stat.S_ISREG(mode):
        return os.open(name, _FILE, dir_fd=folder)
    if stat.S_ISLNK(mode):
        return _open_target(folder, name, trusts)
    raise NoFileError(f"is {name_kind(mode)}, not a file")


def name_kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "something else")


def find_stranger(handle: int) -> str:
    """Return whose an open file or folder is, where this is root and it is not root's."""
    owner = os.fstat(handle).st_uid
    if os.geteuid() or not owner:
        return ""
    return f"is {name_user(owner)}'s, and only that user looks at it"


def describe_closed(folder: int, name: str) -> str:
    """Return whose a file is that may not be read, and its mode."""
    try:
        found = os.stat(name, dir_fd=folder)
    except OSError:
        return f"leads into a directory that this user may not enter{CLOSED_END}"
    mode = stat.S_IMODE(found.st_mode)
    return f"is {name_user(found.st_uid)}'s, with mode {mode:04o}{CLOSED_END}"


def _open_target(folder: int, name: str, trusts: bool) -> int:
    target = os.open(name, _TARGET, dir_fd=folder) if trusts else _follow(folder, name)
    try:
        mode = os.fstat(target).st_mode
        if not stat.S_ISREG(mode):
            raise NoFileError(f"is a link to {name_kind(mode)}, not to a file")
        return os.open(f"/proc/self/fd/{target}", _FILE & ~os.O_NOFOLLOW)
    finally:
        os.close(target)


def _follow(folder: int, name: str) -> int:
    """Open what a link leads to without touching it; root follows links of root alone."""
    if os.geteuid():
        return os.open(name, _TARGET, dir_fd=folder)
    link = os.open(name, _LOOK, dir_fd=folder)
    try:
        whose = find_stranger(link)
        if whose:
            raise ObstacleError("", name, whose)
        target = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.readlink("", dir_fd=link))
    finally:
        os.close(link)
    above = _open_way(os.path.dirname(target))
    try:
        return os.open(os.path.basename(target), _LOOK, dir_fd=above)
    finally:
        os.close(above)


def _open_way(path: str) -> int:
    try:
        return open_directory(path)
    except ObstacleError as obstacle:
        if obstacle.state == ABSENT:
            raise FileNotFoundError(path) from None
        raise
