# SPDX-License-Identifier: BSD-2-Clause
"""What the last look at this node found, kept in memory for who must know it at once.

A prolog of Slurm asks before each job. It imports this file and next to nothing else.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Tuple

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    Key = Tuple[str, str, str]

FOLDER = "/run/mlhost-limits"
STATE = f"{FOLDER}/node.json"
FRESH = 900.0
"""Seconds for which a verdict counts: three looks of the timer."""


STATUSES = ("pass", "fail", "unknown", "error")
_DAMAGED = (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError)
"""What comes of a state that is none of ours."""


class Verdict(NamedTuple):
    """What is to be made of a look at a node.

    ``status`` is ``pass``; ``fail`` where root's own doing falls short; ``unknown`` where that did
    and can no longer be seen; or ``error`` where the check failed. ``failures`` are
    sentences, one for each place, and ``warnings`` those about what users did themselves.
    """

    status: str
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Kept(NamedTuple):
    """What the next look must know of those before it.

    ``success`` is when one was last made to its end, in seconds since 1970, 0 for never. ``short``
    are place, item and bound of what root's doing lacks and nobody has seen mended, by the policy
    that is stamped so.
    """

    success: float = 0.0
    short: tuple[Key, ...] = ()
    of_policy: tuple[int, ...] = ()


def format_state(
    verdict: Verdict, stamp: list[int], now: float | None = None, kept: Kept | None = None
) -> str:
    """Return the text that keeps a verdict.

    The time is that since boot, which nobody sets: a clock that jumps makes no verdict fresh.
    """
    at = _now() if now is None else now
    more = (kept or Kept())._asdict()
    told = {"status": verdict.status, "failures": verdict.failures, "policy": stamp, "at": at}
    return json.dumps({**told, **more}) + "\n"


def read_verdict(policy: str, state: str = STATE, now: float | None = None) -> Verdict | None:
    """Return the last verdict, unless it is old, is of another policy, or could be another's."""
    try:
        kept = _read(state)
        age = (_now() if now is None else now) - kept["at"]
        if kept["policy"] != stamp_policy(policy) or not 0 <= age <= FRESH:
            return None
        return _read_kept_verdict(kept["status"], kept["failures"])
    except _DAMAGED:
        return None


def _read_kept_verdict(status: object, failures: object) -> Verdict | None:
    """Return a verdict that this program can have kept: what is not good says why."""
    is_whole = isinstance(failures, list) and all(isinstance(one, str) for one in failures)
    if not is_whole or status not in STATUSES or not (failures or status == "pass"):
        return None
    return Verdict(str(status), tuple(failures))  # type: ignore[arg-type]


def read_kept(policy: str, state: str = STATE) -> Kept:
    """Return what earlier looks have left, however old; what fell short, of this policy alone."""
    try:
        kept = _read(state)
        success = float(kept["success"])
        short = tuple((str(one), str(two), str(three)) for one, two, three in kept["short"])
        of_policy = tuple(map(int, kept["of_policy"]))
    except _DAMAGED:
        return Kept()
    try:
        is_same = list(of_policy) == stamp_policy(policy)
    except OSError:
        is_same = True  # There is none at the moment, which mends nothing.
    return Kept(success, short if is_same else (), of_policy)


def _read(path: str) -> Any:
    """Return what a state holds.

    :raises OSError, ValueError: If it cannot be read, or could be another's.
    """
    with open(path, encoding="utf-8") as file:
        if os.fstat(file.fileno()).st_uid not in (0, os.geteuid()):
            raise ValueError(f"{path}: is another's")
        return json.load(file)


def stamp_policy(path: str) -> list[int]:
    """Return what tells one state of a file from another.

    :raises OSError: If there is none.
    """
    found = os.stat(path)
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns]


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
