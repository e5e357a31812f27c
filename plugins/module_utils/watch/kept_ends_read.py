# SPDX-License-Identifier: BSD-2-Clause
"""Find what the black box of this host kept of a run, by where it lived or by its process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

from ..core.values import NamedTuple
from ..host.look import format_time
from ..why.kills import is_below
from ..why.where_read import JOB, SESSION, Where, place_process
from .reports_read import Evidence, parse_report
from .ring_read import FOLDER, read_reports

_WHOSE_IS_IT = "--last: only root may read what the black box of this host keeps"
_CLOSE = 60.0
"""Seconds between when a run ended and when its manager says that it did, at most."""


class _Kept(NamedTuple):
    """A report: when its run ended by the clock, which processes did, and what it shows; ``None``
    if that is not to be read."""

    at: float
    pids: frozenset[int]
    seen: Evidence | None


def find_last() -> Evidence:
    """Return what was kept of the last run.

    :raises OSError, ValueError: If nothing was, or only root may read it.
    """
    found = _read(_WHOSE_IS_IT)
    newest = next(found, None)
    if newest is None:
        raise ValueError(
            "--last: no run is known to have died here; the role monitor starts the black box"
        )
    if newest.seen is None:
        at = format_time(newest.at)
        raise ValueError(
            f"--last: the report of {at} in {FOLDER} is not whole, or of a newer version"
        )
    return newest.seen


def find_kept_of(pid: int) -> Evidence | None:
    """Return what was kept of a process that has ended; ``None`` where nothing is, or for root.

    :raises OSError: If root may not read it either.
    """
    return next((one.seen for one in _read() if pid in one.pids), None)


def find_kept(
    where: Where | None, age: float | None = None, job: str | None = None
) -> list[Evidence]:
    """Return what was kept of the run that lived somewhere: one report, or none.

    :param age: How many seconds ago it ended, ``None`` where nobody knows.
    :param job: The number of the job of Slurm, if it was one.
    :raises OSError: If root may not read it.
    """
    if where is None or (where.kind == SESSION and where.pid):
        return []
    for one in _read():
        is_then = age is None or abs(time.time() - one.at - age) <= _CLOSE
        if is_then and one.seen and _lived(one.seen, where, job or ""):
            return [one.seen]
    return []


def _read(refusal: str = "") -> Iterator[_Kept]:
    """Yield the reports, the newest first; to whoever is not root none, or a refusal.

    :raises OSError: If the folder is not root's, or with the refusal.
    """
    try:
        reports = read_reports()
        for at, text in reports:
            yield _parse(at, text)
    except PermissionError:
        if os.geteuid() == 0:
            raise
        if refusal:
            raise PermissionError(refusal) from None


def _parse(at: float, text: str) -> _Kept:
    """Return a report; what cannot be read as one shows nothing."""
    try:
        told = json.loads(text)
        pids = [told["end"]["pid"], *(one["pid"] for one in told["ended"])]
        note = f"seen by the black box of this host, at {format_time(at)}"
        return _Kept(at, frozenset(pids), parse_report(text)._replace(doubts=(note,)))
    except (ValueError, KeyError, TypeError, RecursionError):
        return _Kept(at, frozenset(), None)


def _lived(seen: Evidence, where: Where, job: str) -> bool:
    """Tell whether a run lived somewhere: only what root decides proves it."""
    if where.kind == SESSION:
        return seen.uid == where.uid and place_process(seen.cgroup, seen.uid).kind == SESSION
    if where.kind == JOB:
        return seen.uid == where.uid and any(
            is_below(path, f"job_{job}") for path in _list_paths(seen.cgroup)
        )
    home = where.home
    is_owner = where.uid in (None, seen.uid)
    return (
        is_owner and bool(home) and any(is_below(path, home) for path in _list_paths(seen.cgroup))
    )


def _list_paths(cgroup: str) -> Iterator[str]:
    """Yield the paths of a /proc/PID/cgroup."""
    for line in cgroup.split("\n"):
        yield line.split(":", 2)[-1]
