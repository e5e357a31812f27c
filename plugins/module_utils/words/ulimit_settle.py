# SPDX-License-Identifier: BSD-2-Clause
"""Set the limits of this process as the script of a run sets its own, so that they are judged."""

from __future__ import annotations

import resource
from collections.abc import Iterable

from .facts import Ulimit

_FOLLOWED = {"n": (resource.RLIMIT_NOFILE, 1), "l": (resource.RLIMIT_MEMLOCK, 1024)}
"""By their letters, with their units; others could end this process before the run."""


def follow(ulimits: Iterable[Ulimit]) -> list[str]:
    """Do what a script does, and return what is to be said of it."""
    return [f"ulimit -{one.letter} {one.value} ({one.where}) {_set(one)}" for one in ulimits]


def _set(asked: Ulimit) -> str:
    if asked.letter not in _FOLLOWED:
        return "is not followed: run preflight behind it"
    number, unit = _FOLLOWED[asked.letter]
    soft, hard = resource.getrlimit(number)
    new = _read(asked.value, soft, hard, unit)
    if new is None:
        return "is not known here: run preflight behind it"
    pair = (new if "S" in asked.bounds else soft, new if "H" in asked.bounds else hard)
    try:
        resource.setrlimit(number, pair)
    except (OSError, ValueError):
        return "fails here: it is above the hard limit"
    return "counts"


def _read(value: str, soft: int, hard: int, unit: int) -> int | None:
    named = {"unlimited": resource.RLIM_INFINITY, "hard": hard, "soft": soft}
    if value in named:
        return named[value]
    return int(value) * unit if value.isdecimal() and len(value) < 19 else None
