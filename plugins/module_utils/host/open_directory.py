# SPDX-License-Identifier: BSD-2-Clause
"""Open a directory, and follow no link on the way that somebody else made."""

from __future__ import annotations

import errno
import os
import stat

from ..core.folder_states import ABSENT, BROKEN, CLOSED, FOREIGN_LINK, NO_DIRECTORY
from .users import name_user

_MOST_LINKS = 40  # As the kernel's MAXSYMLINKS.

_WALK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class ObstacleError(Exception):
    """The way to a directory ends before it: in which state, where, and why."""

    def __init__(self, state: str, at: str, reason: str) -> None:
        super().__init__(reason)
        self.state, self.at, self.reason = state, at, reason


def open_directory(path: str) -> int:
    """Open a directory without following a link that somebody but root and this user made.

    :raises ObstacleError: If the way ends before it.
    """
    here, done, links = os.open("/", _WALK), "", 0
    parts = path.split("/")
    while parts:
        part = parts.pop(0)
        if part in ("", "."):
            continue
        entry, found = _step(here, part, done)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            target = _read_link(entry, f"{done}/{part}", found.st_uid, links)
            parts = [*target.split("/"), *parts]
            os.close(entry)
            if not target.startswith("/"):
                continue
            entry, done = os.open("/", _WALK), ""
        elif stat.S_ISDIR(found.st_mode):
            done = os.path.normpath(f"{done}/{part}").rstrip("/")
        else:
            what = "a file" if stat.S_ISREG(found.st_mode) else "neither a file nor a directory"
            raise ObstacleError(NO_DIRECTORY, f"{done}/{part}", f"{done}/{part} is {what}")
        os.close(here)
        here = entry
    return here


def _step(folder: int, name: str, done: str) -> tuple[int, os.stat_result]:
    """Open one entry of a directory, whatever it is, and look at it."""
    try:
        entry = os.open(name, _WALK, dir_fd=folder)
        return entry, os.fstat(entry)
    except FileNotFoundError:
        raise ObstacleError(ABSENT, f"{done}/{name}", f"{done}/{name} does not exist") from None
    except PermissionError as exc:
        raise ObstacleError(CLOSED, done or "/", f"{done or '/'}: {exc.strerror}") from None
    except OSError as exc:
        reason = f"{done}/{name}: [Errno {exc.errno}] {exc.strerror}"
        raise ObstacleError(BROKEN, f"{done}/{name}", reason) from None


def _read_link(link: int, path: str, owner: int, count: int) -> str:
    """Return where a link leads; the very link that was looked at, whoever swaps its name."""
    if owner not in (0, os.geteuid()):
        reason = f"{path} is a link of {name_user(owner)}, which nobody else follows here"
        raise ObstacleError(FOREIGN_LINK, path, reason)
    if count > _MOST_LINKS:
        raise ObstacleError(BROKEN, path, f"{path}: {os.strerror(errno.ELOOP)}")
    return os.readlink("", dir_fd=link)


def is_there(folder: int, name: str) -> bool:
    """Tell whether an open folder has an entry of a name."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
