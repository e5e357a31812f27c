# SPDX-License-Identifier: BSD-2-Clause
"""Read the files of a run as the user whose they are, and list the folder that they lie in."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from functools import partial
from typing import Any

from ..host.as_user import Errand, ask_user, find_person
from ..host.policy_file import LARGEST, read_policy_file
from ..training.folder_measure import find_keeper

_MOST_NAMES = 10_000
_SECONDS = 10.0


class RunFiles:
    """Files as one user sees them: ``person``.

    Root reads as the user who will run. Where nobody says who that is, it is the last on the way to
    the first file who is not root: what that user's file names is no business of root's.
    """

    def __init__(self, user: str | None) -> None:
        """:raises ValueError: If the host does not know the user, or only root can look as it."""
        self.person = _find_person(user) if user else None

    def read(self, path: str) -> bytes:
        """Return what a file holds.

        :raises OSError: If it is absent, no regular file, or larger than 1 MiB.
        """
        found = self._ask(path, partial(_read, path))
        return bytes(found, "latin-1")

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted.

        :raises OSError: If it cannot be read.
        """
        return list(self._ask(folder, partial(_list, folder)))

    def _ask(self, path: str, task: Callable[[], object]) -> Any:
        if self.person is None and os.geteuid() == 0:
            keeper = find_keeper(path)
            self.person = find_person(keeper) if keeper else None
        person = self.person
        if person is None or person.pw_uid == os.geteuid():
            return task()
        report = ask_user(Errand(person, task, seconds=_SECONDS, most=8 * LARGEST))
        if report.problem:
            raise OSError(f"{path}: {_shorten(report.problem, path)}")
        return report.value


def _shorten(problem: str, path: str) -> str:
    return problem[len(path) + 2 :] if problem.startswith(f"{path}: ") else problem


def _find_person(user: str) -> pwd.struct_passwd:
    try:
        person = pwd.getpwnam(user)
    except (KeyError, ValueError):
        raise ValueError(f"this host has no user {user}") from None
    if os.geteuid() not in (0, person.pw_uid):
        raise ValueError(f"only root can look as {user}")
    return person


def _read(path: str) -> str:
    try:
        return read_policy_file(path).decode("latin-1")
    except OSError as exc:
        raise OSError(str(exc) if exc.errno is None else f"{path}: {exc.strerror}") from None


def _list(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MOST_NAMES]
    except OSError as exc:
        raise OSError(f"{folder}: {exc.strerror}") from None
