# SPDX-License-Identifier: BSD-2-Clause
"""Predict the limits of a fresh session: what it inherits, what PAM sets, what the kernel takes.

Source: ``setup_limits()`` in pam_limits.c and setrlimit(2); the reset to the limits of process 1
is Debian's patch, or the option ``set_all``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.values import RLIMITS, NamedTuple, Rlimit
from .pam_limits import Resolution

FD_SETSIZE = 1024


class Start(NamedTuple):
    """What a session starts from, and what it may do.

    ``resets``: whether PAM starts over from the limits of process 1.
    """

    inherited: Mapping[str, Rlimit]
    of_pid_1: Mapping[str, Rlimit]
    nr_open: int
    resets: bool
    may_raise: bool = True


def start_with(limit: Rlimit, nr_open: int, resets: bool) -> Start:
    """Return the start of a session that has one limit of everything, as far as nofile may go."""
    limits = dict.fromkeys(RLIMITS, limit)
    limits["nofile"] = Rlimit(*(min(bound, nr_open) for bound in limit))
    return Start(limits, limits, nr_open, resets)


def predict_limits(resolution: Resolution, start: Start) -> dict[str, Rlimit]:
    """Return the limits that these lines give a session."""
    if resolution.stopped_by:
        return dict(start.inherited)
    return {item: _predict(item, resolution, start) for item in start.inherited}


def find_baseline(item: str, start: Start) -> Rlimit:
    """Return what PAM changes: the inherited limit, or that of process 1."""
    if not start.resets:
        return start.inherited[item]
    base = start.of_pid_1[item]
    return Rlimit(min(base.soft, FD_SETSIZE), base.hard) if item == "nofile" else base


def find_wanted(item: str, resolution: Resolution, start: Start) -> Rlimit:
    """Return what PAM asks the kernel for."""
    base = find_baseline(item, start)
    bounds = [resolution.bounds.get((item, kind)) for kind in ("soft", "hard")]
    soft, hard = (int(bound.winner.value) if bound else old for bound, old in zip(bounds, base))
    return Rlimit(min(soft, hard), hard)


def _predict(item: str, resolution: Resolution, start: Start) -> Rlimit:
    wanted = find_wanted(item, resolution, start)
    return wanted if is_taken(item, wanted, start) else start.inherited[item]


def find_refused(resolution: Resolution, start: Start) -> str | None:
    """Return the first item that some line states and the kernel refuses.

    It ends the session, unless pam_limits is built with Debian's patch (``ends_sessions``).
    """
    if not resolution.stopped_by:
        for item in dict.fromkeys(item for item, _kind in resolution.bounds):
            wanted = item in start.inherited and find_wanted(item, resolution, start)
            if wanted and not is_taken(item, wanted, start):
                return item
    return None


def is_taken(item: str, wanted: Rlimit, start: Start) -> bool:
    """Tell whether setrlimit(2) takes a pair; one that it refuses leaves the old as it was."""
    if item == "nofile" and wanted.hard > start.nr_open:
        return False
    return wanted.hard <= start.inherited[item].hard or start.may_raise
