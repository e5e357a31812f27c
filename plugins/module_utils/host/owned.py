# SPDX-License-Identifier: BSD-2-Clause
"""Read what may be a user's: root's own through the door, all else by a child that is its owner."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .as_user import Errand, ask_user, find_person
from .door import ForeignError
from .files import LARGEST, read_text

_TIME_LIMIT = 10.0


def read_as_owner(path: str) -> str | None:
    """Return a file as latin-1, as its owner may read it; ``None`` where it is absent.

    What a user's file says is that user's word: nobody else is to be judged by it.

    :raises OSError: If it cannot be read.
    """
    try:
        return read_text(path)
    except ForeignError as error:
        if not error.uid:
            raise
        told = ask_owner(error.uid, partial(read_text, path))
        return told if told is None else str(told)


def ask_owner(
    uid: int,
    task: Callable[[], object],
    seconds: float = _TIME_LIMIT,
    most: int = 4 * LARGEST,
) -> Any:
    """Return what a task tells that runs as a user.

    :param most: Bytes of JSON.
    :raises OSError: If it tells nothing.
    """
    errand = Errand(find_person(uid), task, seconds=seconds, most=most)
    report = ask_user(errand)
    if report.problem:
        raise OSError(report.problem)
    return report.value
