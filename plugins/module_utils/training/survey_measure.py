# SPDX-License-Identifier: BSD-2-Clause
"""Have a user look at the files of a cache: in a child that is this user, with an end to all."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, NoReturn

from .cache_read import Checked, LateError, Survey, load_archives, survey_files
from .file_verdict import CORRUPT, LEFTOVER, SOUND, UNSEEN
from .folder_measure import run_there

TIME_LIMIT, DEEP_LIMIT = 60.0, 600.0
"""Seconds that a look by a child may take, of the ends of each file and of all that is in it."""

_GRACE = 5.0
_FIELDS = {CORRUPT: "corrupt", UNSEEN: "unknown", LEFTOVER: "leftover"}
_MOST = {CORRUPT: 100, UNSEEN: 20, LEFTOVER: 20}
_MOST_BYTES = 20_000  # Of the names in each list, so that an answer has an end.


def survey_there(
    path: str,
    uid: int,
    deep: bool = False,
    tell: Callable[[int], None] | None = None,
    most: float = DEEP_LIMIT,
) -> Survey:
    """Look at all files below a directory as a user; for root, as whose the directory is.

    Whoever looks at what is their own needs no child, and is told how far the look has come.

    :param most: How many seconds a child may take, if that is less than it would.
    """
    if uid == os.geteuid():
        return survey_files(path, deep, tell)
    seconds = min(most, DEEP_LIMIT if deep else TIME_LIMIT)
    if deep:
        load_archives()
    report = run_there(uid, path, partial(_survey, path, deep, seconds), seconds + _GRACE)
    if report.problem:
        return _read_survey({"reason": f"{path}: {report.problem}"})
    return _read_survey(report.value)


def _survey(path: str, deep: bool, seconds: float) -> dict[str, object]:
    """Look for so long, and return what was seen as JSON can carry it. Runs in a child."""

    def stop(_number: int, _frame: object) -> NoReturn:
        raise LateError(f"in {seconds:g} s")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    survey = survey_files(path, deep)
    signal.setitimer(signal.ITIMER_REAL, 0)
    lists = {CORRUPT: survey.corrupt, UNSEEN: survey.unknown, LEFTOVER: survey.leftover}
    return {
        **survey._asdict(),
        **{name: _shorten(lists[status], _MOST[status]) for status, name in _FIELDS.items()},
    }


def _shorten(files: list[Checked], most: int) -> list[Checked]:
    """Return the first of these files, as many as an answer may hold."""
    kept, size = [], 0
    for one in islice(files, most):
        size += len(one.path) + len(one.reason)
        if size > _MOST_BYTES:
            break
        kept.append(one)
    return kept


def _read_survey(raw: dict[str, Any]) -> Survey:
    """Return what a child answered."""
    counts = raw.get("counts", {})
    corrupt, unknown, leftover = (
        [Checked(*map(str, one)) for one in raw.get(name, ())] for name in _FIELDS.values()
    )
    return Survey(
        {status: int(counts.get(status, 0)) for status in (SOUND, *_FIELDS)},
        corrupt,
        unknown,
        leftover,
        str(raw.get("reason", "")),
        str(raw.get("unfinished", "")),
    )
