# SPDX-License-Identifier: BSD-2-Clause
"""A folder for trials in a directory of others, from which only what the trials made is removed.

Between the making of a folder and its opening, whoever may write to the directory can put another
one in its place, even one of this user's with files in it. So the trials have a second folder
inside, made once the first was opened and found closed to others. That inner one is emptied; the
outer one goes only if it is empty and its name still leads to it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from .marks import is_abandoned, make_mark
from .scratch import OPEN_FOLDER, empty_folder, is_same

PREFIX = ".mlhost-probe-"
_MOST_NAMES = 20_000


class SwappedError(Exception):
    """The folder that was opened is not one that was made."""


def pick_trial_name() -> str:
    """Return a name that nobody can guess and that says who made it."""
    return PREFIX + make_mark()


@contextmanager
def trial_folder(parent: int, name: str) -> Iterator[int]:
    """Make a folder that only this user can use, and remove it with all that is in it.

    :raises SwappedError: If what was made is not what was opened.
    """
    os.mkdir(name, 0o700, dir_fd=parent)
    outer = None
    try:
        outer = _open_outer(parent, name)
        os.mkdir(name, 0o700, dir_fd=outer)
        inner = os.open(name, OPEN_FOLDER, dir_fd=outer)
        try:
            yield inner
        finally:
            empty_folder(inner)
            os.close(inner)
    finally:
        _remove(parent, name, outer)


def _open_outer(parent: int, name: str) -> int:
    try:
        outer = os.open(name, OPEN_FOLDER, dir_fd=parent)
    except OSError as exc:
        text = f"the directory that was made was swapped ([Errno {exc.errno}])"
        raise SwappedError(text) from None
    found = os.fstat(outer)
    trouble = ""
    if found.st_uid != os.geteuid():
        where = "it was swapped, or this file system takes root for somebody else"
        trouble = f"the directory that was made belongs to uid {found.st_uid}: {where}"
    elif os.geteuid() == 0 and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        trouble = "others may write to the directory that was made: it was swapped, or its file"
        trouble += " system keeps no modes"
    if trouble:
        os.close(outer)
        raise SwappedError(trouble)
    return outer


def _remove(parent: int, name: str, outer: int | None) -> None:
    """Remove both folders, of which only empty ones can go."""
    same = outer is None or is_same(name, parent, outer)
    if outer is not None:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=outer)
        os.close(outer)
    if same:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=parent)


def remove_trial(parent: int, name: str) -> None:
    """Remove the folder of a trial that was killed; what is not ours stays."""
    try:
        outer = _open_outer(parent, name)
    except SwappedError:
        return
    with contextlib.suppress(OSError):
        inner = os.open(name, OPEN_FOLDER, dir_fd=outer)
        if os.fstat(inner).st_uid == os.geteuid():
            empty_folder(inner)
        os.close(inner)
    _remove(parent, name, outer)


def remove_dead_trials(parent: int) -> None:
    """Remove what trials of dead runs left in a directory, as far as it is this user's."""
    with contextlib.suppress(OSError):
        listed = os.open(".", OPEN_FOLDER, dir_fd=parent)
        try:
            with os.scandir(listed) as entries:
                names = [one.name for one in islice(entries, _MOST_NAMES)]
            for name in names:
                if name.startswith(PREFIX):
                    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
                    if is_abandoned(name[len(PREFIX) :], found.st_ctime):
                        remove_trial(parent, name)
        finally:
            os.close(listed)
