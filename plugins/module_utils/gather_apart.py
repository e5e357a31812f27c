# SPDX-License-Identifier: BSD-2-Clause
"""Gather the words that start a run in a child: a file can hang, or be long to make sense of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .core.reader import PolicyError
from .gather_words import gather_words
from .host.children import run_in_children
from .words.facts import Fact, Stated, Ulimit, Wanted, Words

_MOST = 2**24


def gather_apart(
    files: Sequence[str], command: Sequence[str] | None, user: object, seconds: float
) -> tuple[Words, list[str]]:
    """Return what :func:`gather_words` does, within so many seconds.

    :raises ValueError: With all that it refuses, or if it takes longer.
    """
    [report] = run_in_children([partial(_gather, files, command, user)], seconds, _MOST)
    if report.problem:
        raise ValueError(f"what starts the run could not be read: {report.problem}")
    if "refused" in report.value:
        raise PolicyError(report.value["refused"])
    return _unpack(report.value["words"]), report.value["names"]


def _gather(files: Sequence[str], command: Sequence[str] | None, user: object) -> dict[str, Any]:
    try:
        words, names = gather_words(files, command, user)
    except PolicyError as error:
        return {"refused": list(error.problems)}
    except (OSError, ValueError) as error:
        return {"refused": [str(error)]}
    return {"words": words, "names": names}


def _unpack(row: Sequence[Any]) -> Words:
    """Return words as they were before JSON carried them."""
    facts, wanted, stated, notes, problems, library, ulimits, is_job = row
    return Words(
        tuple(Fact(*one) for one in facts),
        tuple(Wanted(*one)._replace(arguments=tuple(one[-1])) for one in wanted),
        tuple(Stated(*one) for one in stated),
        tuple(notes),
        tuple(problems),
        library,
        tuple(Ulimit(*one) for one in ulimits),
        bool(is_job),
    )
