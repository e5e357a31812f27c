# SPDX-License-Identifier: BSD-2-Clause
"""Remove a folder of ours with all that is in it, by descriptor, so that no name leads elsewhere.

No link is followed and no mount point crossed, no folder of somebody else is entered, and there is
an end to how much is removed. What does not fit is left where it is, and is no error.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from itertools import islice

from .door import read_kernel_text

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SEE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 32
_MOST = 100_000
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MOUNT_ID = re.compile(r"^mnt_id:\s*([0-9]+)", re.MULTILINE)


def open_own_folder(name: str, parent: int) -> int | None:
    """Open a folder that is this user's and closed to all others; ``None`` if it is not that."""
    folder = _open_inside(name, parent)
    if folder is None:
        return None
    found = os.fstat(folder)
    if found.st_uid == os.geteuid() and not found.st_mode & _OTHERS:
        return folder
    os.close(folder)
    return None


def see_inside(name: str, parent: int) -> int | None:
    """Return a handle (O_PATH) of what has a name on the file system of its folder, and no other.

    Whoever owns a folder may mount there what never answers (fusermount3(1)): nothing is asked of
    that but which mount it is, which the kernel knows by itself.
    """
    try:
        seen = os.open(name, _SEE, dir_fd=parent)
    except OSError:
        return None
    if _read_mount(seen) == _read_mount(parent):
        return seen
    os.close(seen)
    return None


def _open_inside(name: str, parent: int) -> int | None:
    seen = see_inside(name, parent)
    if seen is None:
        return None
    try:
        return os.open(".", OPEN_FOLDER, dir_fd=seen)
    except OSError:
        return None
    finally:
        os.close(seen)


def remove_folder(name: str, parent: int, folder: int) -> bool:
    """Remove an open folder of ours and its name; return whether that is done.

    A name that leads to another folder by now is left alone.
    """
    if not empty_folder(folder) or not is_same(name, parent, folder):
        return False
    try:
        os.rmdir(name, dir_fd=parent)  # Whatever has its name by now, what is lost is empty.
    except OSError:
        return False
    return True


def is_same(name: str, parent: int, folder: int) -> bool:
    """Tell whether a name still leads to an open folder."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(found, os.fstat(folder))


def empty_folder(folder: int) -> bool:
    """Remove what is in an open folder of ours; return whether nothing is left in it."""
    return _empty(folder, find_mount(folder), iter(range(_MOST)), _DEEPEST)


def find_mount(folder: int) -> tuple[int, str]:
    """Return what tells the mount of an open file from every other, a bind mount's too."""
    return os.fstat(folder).st_dev, _read_mount(folder)


def _read_mount(handle: int) -> str:
    try:
        match = _MOUNT_ID.search(read_kernel_text(f"/proc/self/fdinfo/{handle}"))
    except OSError:
        match = None
    return match[1] if match else ""


def _empty(folder: int, mount: tuple[int, str], budget: Iterator[int], depth: int) -> bool:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, _MOST)]
    done = True
    for name in names:
        if next(budget, None) is None:
            return False
        try:
            os.unlink(name, dir_fd=folder)
        except IsADirectoryError:
            done = _remove_inner(name, folder, mount, budget, depth) and done
        except FileNotFoundError:
            continue
        except OSError:
            done = False  # Something is mounted on it, or it is immutable.
    return done


def _remove_inner(
    name: str, parent: int, mount: tuple[int, str], budget: Iterator[int], depth: int
) -> bool:
    """Remove a folder in a folder of ours, unless it is another mount's or another user's."""
    folder = _open_inside(name, parent)
    if folder is None:
        return False
    try:
        own = os.fstat(folder).st_uid == os.geteuid() and find_mount(folder) == mount
        if depth == 0 or not own or not _empty(folder, mount, budget, depth - 1):
            return False
        os.rmdir(name, dir_fd=parent)
    except OSError:
        return False
    finally:
        os.close(folder)
    return True
