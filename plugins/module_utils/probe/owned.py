# SPDX-License-Identifier: BSD-2-Clause
"""Read what may be a user's: root's own through the door, all else by a child that is its owner."""

from __future__ import annotations

from functools import partial

from .as_user import Errand, ask_user, find_person
from .door import ForeignError
from .files import LARGEST, list_folder, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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


def read_folder_as(uid: int, folder: str, suffix: str) -> dict[str, str]:
    """Return the files of a user's folder with this ending, by path.

    :raises OSError: If they cannot be read.
    """
    told = ask_owner(uid, partial(_read_folder, folder, suffix))
    return {str(path): str(text) for path, text in told.items()}


def _read_folder(folder: str, suffix: str) -> dict[str, str]:
    paths = [f"{folder}/{name}" for name in list_folder(folder) if name.endswith(suffix)]
    texts = {path: read_text(path) for path in paths}
    return {path: text for path, text in texts.items() if text is not None}


def ask_owner(uid: int, task: Callable[[], object], seconds: float = _TIME_LIMIT) -> Any:
    """Return what a task tells that runs as a user.

    :raises OSError: If it tells nothing.
    """
    errand = Errand(find_person(uid), task, seconds=seconds, most=4 * LARGEST)
    report = ask_user(errand)
    if report.problem:
        raise OSError(report.problem)
    return report.value
