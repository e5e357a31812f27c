# SPDX-License-Identifier: BSD-2-Clause
"""Foretell units, tasks and logind of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.declaration import Declaration
from ..core.finding import (
    FAIL,
    FORETOLD,
    PASS,
    UNKNOWN,
    Observation,
    Requirement,
    judge,
    observe_limit,
)
from ..core.forecast import Forecast, list_extremes
from ..core.rlimit import RLIMITS, Rlimit
from ..systemd.causes import find_unit_causes
from ..systemd.model import (
    HIGHEST_DEFAULT,
    Files,
    Manager,
    UnitFacts,
    predict_unit,
    rank_statements,
)
from .logind_causes import find_logind_causes, format_flag
from .logind_conf import predict_remove_ipc, read_remove_ipc
from .tasks_causes import TasksLevel, find_tasks_causes, find_tasks_line, predict_all, predict_level
from .tasks_max import MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit


def foretell_unit(wanted: Requirement, limit: Limit, facts: UnitFacts) -> Forecast:
    """Return what a service gets, whatever its manager has.

    :param facts: Of which the manager's own limits and defaults are not looked at.
    """
    ranked = rank_statements(wanted.item, facts)
    scenes = [
        facts._replace(manager=_manage(facts.manager.nr_open, one)) for one in list_extremes()
    ]
    # What the kernel refuses, a manager that has all takes from its own.
    given = [predict_unit(one) for one in scenes[1:]] if ranked else list(map(predict_unit, scenes))
    seen = [observe_limit(wanted, one, "", "") for one in given]
    statuses = {judge(wanted, one).status for one in seen}
    if len(statuses) > 1 or UNKNOWN in statuses:
        return Forecast(UNKNOWN, reason=f"no file states {wanted.item} {wanted.bound}")
    causes = find_unit_causes(wanted.item, limit, scenes[-1]) if FAIL in statuses else []
    by = ranked[-1].setting if ranked else None
    at = Declaration(by.path, by.line, f"{by.key}={by.value}", "") if by else None
    return Forecast(statuses.pop(), seen[-1].value, at, tuple(causes))


def _manage(nr_open: int, limit: Rlimit) -> Manager:
    own: Mapping[str, Rlimit] = {
        **dict.fromkeys(RLIMITS, limit),
        "nofile": Rlimit(*(min(bound, nr_open) for bound in limit)),
    }
    defaults = {**own, "nofile": Rlimit(1024, HIGHEST_DEFAULT)}
    return Manager(defaults, own, nr_open, at_boot=True)


def foretell_tasks(wanted: Requirement, levels: Sequence[TasksLevel]) -> Forecast:
    """Return how many tasks a unit may hold, if that is no share of what the host can hold."""
    least, most = (predict_all(levels, highest) for highest in (1, MOST))
    if least != most:
        return Forecast(UNKNOWN, reason="a share of what the host can hold bounds it")
    low = min(levels, key=lambda level: predict_level(level, MOST))
    status = judge(wanted, Observation(most, FORETOLD)).status
    causes = find_tasks_causes(wanted.minimum or 0, levels, MOST) if status == FAIL else []
    return Forecast(status, most, find_tasks_line(low), tuple(causes))


def foretell_remove_ipc(wanted: bool, files: Files) -> Forecast:
    """Return whether logind will remove the shared memory of a user who has gone."""
    ranked, given = read_remove_ipc(files), predict_remove_ipc(files)
    causes = find_logind_causes(wanted, files, None)
    status = PASS if given == wanted else FAIL
    return Forecast(status, format_flag(given), ranked[-1] if ranked else None, causes)
