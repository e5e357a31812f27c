# SPDX-License-Identifier: BSD-2-Clause
"""Foretell a session of an image."""

from __future__ import annotations

from ..core.finding import FAIL, UNKNOWN, Requirement, judge, observe_limit
from ..core.forecast import Forecast, conclude, list_extremes
from ..core.rlimit import RLIMITS, Rlimit
from .causes import SessionFacts, find_session_causes, predict_session
from .model import Start


def foretell_session(wanted: Requirement, facts: SessionFacts) -> Forecast:
    """Return what a session gets, whatever the service that opens it starts from."""
    scenes = [facts._replace(start=_start(facts.start, limit)) for limit in list_extremes()]
    seen = [observe_limit(wanted, predict_session(one), "", "") for one in scenes]
    statuses = {judge(wanted, one).status for one in seen}
    if len(statuses) > 1 or UNKNOWN in statuses:
        return Forecast(UNKNOWN, reason=f"no limits file states {wanted.item} {wanted.bound}")
    bound = facts.resolution.bounds.get((wanted.item, wanted.bound))
    causes = find_session_causes(wanted, scenes[-1]) if FAIL in statuses else []
    return conclude(statuses.pop(), seen[-1].value, bound, tuple(causes))


def _start(start: Start, limit: Rlimit) -> Start:
    limits = dict.fromkeys(RLIMITS, limit)
    limits["nofile"] = Rlimit(*(min(bound, start.nr_open) for bound in limit))
    return start._replace(inherited=limits, of_pid_1=limits)
