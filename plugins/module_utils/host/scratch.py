# SPDX-License-Identifier: BSD-2-Clause
"""A folder for one measurement, which only its user can look into and which outlives nobody.

What a killed run left is removed by the next one that makes such a folder beside it. A folder is
ours if its whole name is of our form and its process is gone, and if it is a real folder of this
user's that is closed to others. All else that has such a name is left alone without a word.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from ..core.values import NamedTuple
from .door import read_kernel_text
from .marks import LIMITS, is_abandoned, make_mark

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
    """Remove what is in an open folder of ours; return whether nothing is left in it.

    No link is followed and no mount point crossed, no folder of somebody else is entered, and
    there is an end to how much is removed. What does not fit is left, and is not an error.
    """
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


CANARY = "mlhost-canary-"
"""What the names begin with of what is measured by programs; by files, as in ``marks``."""

PROGRAMS = "/var/tmp"  # noqa: S108 - /run and /tmp may forbid to run programs; the name is random
_RUN = "/run"
_MOST_NAMES = 20_000
_MOST_USERS, _MOST_EACH = 16, 16
_TIME_LIMIT = 10.0


class Swept(NamedTuple):
    """The paths of what dead runs had left: what is gone, and what could not be removed whole."""

    gone: list[str]
    left: list[str]


def find_parent() -> str:
    """Return where such folders are: a hardened service may write nowhere but in its own."""
    own = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    if not own.startswith(f"{_RUN}/"):
        return _RUN
    try:
        found = os.lstat(own)
    except OSError:
        return _RUN
    closed = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return own if stat.S_ISDIR(found.st_mode) and closed else _RUN


def make_scratch(parent: str = "", prefix: str = LIMITS) -> str:
    """Make a folder whose name nobody can guess, once what dead runs left there is removed.

    :param parent: Where; by default what :func:`find_parent` says.
    """
    parent = parent or find_parent()
    sweep(parent, prefix)
    folder = f"{parent}/{prefix}{make_mark()}"
    os.mkdir(folder, 0o700)
    return folder


def remove_scratch(folder: str) -> bool:
    """Remove a folder of :func:`make_scratch` with all that is in it; tell whether it is gone."""
    parent, name = os.path.split(folder)
    return bool(_remove(parent, [name]).gone)


def sweep(parent: str, prefix: str = LIMITS) -> Swept:
    """Remove the folders that dead runs left; those of other users as these users themselves."""
    owned: dict[int, list[str]] = {}
    for name, found in _list_named(parent, prefix):
        if is_abandoned(name[len(prefix) :], found.st_ctime):
            owned.setdefault(found.st_uid, []).append(name)
    me = os.geteuid()
    own = _remove(parent, sorted(owned.pop(me, ())))
    theirs = _remove_as_users(owned, parent) if me == 0 and owned else []
    return Swept([*own.gone, *theirs], own.left)


def _list_named(parent: str, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what has such a name, but what somebody has mounted, which may never answer."""
    try:
        above = os.open(parent, OPEN_FOLDER & ~os.O_NOFOLLOW)
    except OSError:
        return
    try:
        with os.scandir(above) as entries:
            listed = [one.name for one in islice(entries, _MOST_NAMES)]
        for name in listed:
            handle = see_inside(name, above) if name.startswith(prefix) else None
            if handle is not None:
                yield name, os.fstat(handle)
                os.close(handle)
    finally:
        os.close(above)


def _remove(parent: str, names: Iterable[str]) -> Swept:
    """Remove those folders that are this user's own."""
    swept = Swept([], [])
    try:
        above = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return swept
    try:
        for name in names:
            folder = open_own_folder(name, above)
            if folder is not None:
                done = remove_folder(name, above, folder)
                (swept.gone if done else swept.left).append(f"{parent}/{name}")
                os.close(folder)
    finally:
        os.close(above)
    return swept


def _remove_as_users(owned: dict[int, list[str]], parent: str) -> list[str]:
    """Remove folders in children that became their owners, who can only harm themselves."""
    from .as_user import Errand, ask_users, find_person  # A killed canary of a user is rare.

    some = [(uid, names[:_MOST_EACH]) for uid, names in sorted(owned.items())[:_MOST_USERS]]
    errands = [
        Errand(find_person(uid), partial(_remove_own, parent, names), seconds=_TIME_LIMIT)
        for uid, names in some
    ]
    return [
        f"{parent}/{name}"
        for (_uid, names), report in zip(some, ask_users(errands))
        for name in names
        if isinstance(report.value, list) and f"{parent}/{name}" in report.value
    ]


def _remove_own(parent: str, names: list[str]) -> list[str]:
    return _remove(parent, names).gone
