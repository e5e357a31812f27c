# SPDX-License-Identifier: BSD-2-Clause
"""Rename so that no file is lost on the way: swap two, or refuse to replace one (renameat2(2))."""

from __future__ import annotations

import ctypes
import errno
import os

from .temporary import pick_name

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
