# SPDX-License-Identifier: BSD-2-Clause
"""Name the files that wait beside what they will replace, and rename without losing any."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from itertools import islice

from ..host.marks import is_abandoned, make_mark

_AT_FDCWD = -100
_NO_REPLACE, _EXCHANGE = 1, 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL)  # An old C library or kernel, NFS, some FUSE.


def swap(new: str, path: str) -> str:
    """Put *new* in the place of *path* in one step.

    :returns: Where the old file is now, the very same file with its times and attributes.
    :raises OSError: If there is no *path*; nothing is changed then.
    """
    if _renameat2(new, path, _EXCHANGE):
        return new
    aside = pick_name(path)
    os.link(path, aside)
    os.rename(new, path)
    return aside


def place(new: str, path: str) -> None:
    """Give *new* the name *path*.

    :raises FileExistsError: If the name is taken; nothing is changed then.
    """
    if not _renameat2(new, path, _NO_REPLACE):
        os.link(new, path)
        os.unlink(new)


def take_away(path: str) -> str:
    """Give *path* a name that nobody can guess, and return that."""
    aside = pick_name(path)
    os.rename(path, aside)
    return aside


def _renameat2(old: str, new: str, flags: int) -> bool:
    """Rename with flags; return whether that is supported here."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # glibc 2.28
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), new)


TEMPORARY_PREFIX = ".mlhost-"
"""What the names of our temporary files begin with; no daemon reads such a name."""

_MOST_NAMES = 100_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def pick_name(path: str) -> str:
    """Return a name beside *path* that nobody can guess and that says who made it."""
    return f"{os.path.dirname(path)}/{pick_bare_name()}"


def pick_bare_name() -> str:
    """Return such a name without a folder."""
    return f"{TEMPORARY_PREFIX}{make_mark()}"


def remove_abandoned(folder: str | int) -> list[str]:
    """Remove the temporary files that dead runs left in a folder; return their names.

    Whatever else has such a name, and a folder that is not there, is left alone.

    :param folder: A path, or what :func:`os.open` returned.
    """
    try:
        here = os.open(folder, _FOLDER) if isinstance(folder, str) else os.dup(folder)
    except OSError:
        return []
    try:
        return [name for name in _list_names(here) if _remove(name, here)]
    finally:
        os.close(here)


def _list_names(folder: int) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, _MOST_NAMES)]
        return sorted(name for name in names if name.startswith(TEMPORARY_PREFIX))
    return []


def _remove(name: str, folder: int) -> bool:
    """Remove a file of a dead run, unless somebody else may have made it; tell if it is gone."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not is_abandoned(name[len(TEMPORARY_PREFIX) :], found.st_ctime):
            return False
        # Nobody else makes one in a closed folder; it may have the owner of what it replaced.
        if not stat.S_ISDIR(found.st_mode) and (_is_closed(folder) or _is_ours(found)):
            os.unlink(name, dir_fd=folder)
            return True
    except OSError:
        pass  # It is gone, or it cannot be removed.
    return False


def _is_closed(folder: int) -> bool:
    found = os.fstat(folder)
    return _is_ours(found) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid in (0, os.geteuid())
