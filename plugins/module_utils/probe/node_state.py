# SPDX-License-Identifier: BSD-2-Clause
"""What the last look at this node found, kept in memory for who must know it at once.

A prolog of Slurm asks before each job. It imports this file and next to nothing else.
"""

from __future__ import annotations

import json
import os
import time
from typing import NamedTuple

FOLDER = "/run/mlhost-limits"
STATE = f"{FOLDER}/node.json"
FRESH = 900.0
"""Seconds for which a verdict counts: three looks of the timer."""


class Verdict(NamedTuple):
    """``status`` is pass, fail, or error where the check could not be made; ``failures`` are
    sentences, one for each place."""

    status: str
    failures: tuple[str, ...]


def format_state(verdict: Verdict, stamp: list[int], now: float | None = None) -> str:
    """Return the text that keeps a verdict.

    The time is that since boot, which nobody sets: a clock that jumps makes no verdict fresh.
    """
    at = _now() if now is None else now
    kept = {"status": verdict.status, "failures": verdict.failures, "policy": stamp, "at": at}
    return json.dumps(kept) + "\n"


def read_verdict(policy: str, state: str = STATE, now: float | None = None) -> Verdict | None:
    """Return the last verdict, unless it is old, is of another policy, or could be another's."""
    try:
        with open(state, encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid not in (0, os.geteuid()):
                return None
            kept = json.load(file)
        age = (_now() if now is None else now) - kept["at"]
        if kept["policy"] != stamp_policy(policy) or not 0 <= age <= FRESH:
            return None
        return Verdict(str(kept["status"]), tuple(map(str, kept["failures"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stamp_policy(path: str) -> list[int]:
    """Return what tells one state of a file from another.

    :raises OSError: If there is none.
    """
    found = os.stat(path)
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns]


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
