# SPDX-License-Identifier: BSD-2-Clause
"""Judge what an image's files will give: what they are sure to give, whatever the host will be.

Nothing of an image is measured, so nothing passes: what its files give is unknown until the first
boot, with the forecast as its outlook. What they are sure not to give falls short now.
"""

from __future__ import annotations

from typing import NamedTuple

from .cause import Cause, Outlook
from .declaration import Declaration
from .finding import (
    FAIL,
    FORETOLD,
    PASS,
    UNKNOWN,
    Finding,
    Observation,
    Requirement,
    format_observed,
    judge,
    observe_limit,
)
from .logind_causes import find_logind_causes, format_flag
from .logind_conf import predict_remove_ipc, read_remove_ipc
from .quote import one_line
from .rlimit import RLIMITS, UNLIMITED, Rlimit
from .session_causes import SessionFacts, find_session_causes, predict_session
from .session_model import Start
from .shm_causes import ShmFacts, find_shm_causes
from .shm_mount import find_lines
from .tasks_causes import find_tasks_causes, find_tasks_line, predict_all, predict_level
from .tasks_max import MOST
from .unit_causes import find_unit_causes
from .unit_model import HIGHEST_DEFAULT, Manager, UnitFacts, predict_unit, rank_statements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .pam_limits import Bound
    from .policy_reader import Limit
    from .tasks_causes import TasksLevel
    from .unit_model import Files

NEEDS_BOOT = "nothing of an image runs"
_OF_RUNNING = ("sysctl", "systemctl", "mount")
"""Programs that change what runs: of no use to what does not."""


class Forecast(NamedTuple):
    """What the files give; ``value`` is ``None`` where they do not say, and ``by`` who says so."""

    status: str
    value: int | str | None = None
    by: Declaration | None = None
    causes: tuple[Cause, ...] = ()
    reason: str = ""


def skip(wanted: Iterable[Requirement], reason: str) -> Iterator[tuple[Requirement, Forecast]]:
    """Yield that nothing can be said, and why."""
    for one in wanted:
        yield one, Forecast(UNKNOWN, reason=reason)


def tell(wanted: Requirement, forecast: Forecast, root: str = "/") -> Finding:
    """Return the finding of one forecast: it falls short, or the first boot will show.

    :param root: The tree that was read; remedies are for it, and not for the host that looks.
    """
    outlook = Outlook(after_boot=forecast.status)
    if forecast.status == FAIL:
        causes = tuple(_fit(cause, root) for cause in forecast.causes)
        return Finding(FAIL, wanted, Observation(forecast.value, FORETOLD), causes, outlook)
    told = f"{forecast.reason or NEEDS_BOOT}, so the first boot decides"
    if forecast.status == PASS:
        told = _describe(wanted, forecast)
    return Finding(UNKNOWN, wanted, Observation(None, FORETOLD, told), (), outlook)


def _describe(wanted: Requirement, forecast: Forecast) -> str:
    """Return ``foretold nofile soft 65536 by FILE:LINE``."""
    words = ["foretold", wanted.item]
    words += [wanted.bound] if wanted.bound != "value" else []
    words += [] if forecast.value is None else [format_observed(forecast.value, wanted.unit)]
    words += [f"by {forecast.by.place}"] if forecast.by else []
    return one_line(" ".join(words))


def _fit(cause: Cause, root: str) -> Cause:
    """Return a cause whose commands change the files of the tree, and nothing that runs."""
    enter = () if root == "/" else ("chroot", root)
    commands = tuple(
        (*enter, *words) for words in cause.remedy.commands if words[0] not in _OF_RUNNING
    )
    return cause._replace(remedy=cause.remedy._replace(commands=commands, then="build it again"))


def foretell_session(wanted: Requirement, facts: SessionFacts) -> Forecast:
    """Return what a session gets, whatever the service that opens it starts from."""
    scenes = [facts._replace(start=_start(facts.start, limit)) for limit in _extremes()]
    seen = [observe_limit(wanted, predict_session(one), "", "") for one in scenes]
    statuses = {judge(wanted, one).status for one in seen}
    if len(statuses) > 1 or UNKNOWN in statuses:
        return Forecast(UNKNOWN, reason=f"no limits file states {wanted.item} {wanted.bound}")
    bound = facts.resolution.bounds.get((wanted.item, wanted.bound))
    causes = find_session_causes(wanted, scenes[-1]) if FAIL in statuses else []
    return _conclude(statuses.pop(), seen[-1].value, bound, tuple(causes))


def _conclude(
    status: str, value: int | str | None, bound: Bound | None, causes: tuple[Cause, ...]
) -> Forecast:
    return Forecast(status, value, bound.winner if bound else None, causes)


def _extremes() -> tuple[Rlimit, Rlimit]:
    """Return the least and the most that anything starts from."""
    return Rlimit(0, 0), Rlimit(UNLIMITED, UNLIMITED)


def _start(start: Start, limit: Rlimit) -> Start:
    limits = dict.fromkeys(RLIMITS, limit)
    limits["nofile"] = Rlimit(*(min(bound, start.nr_open) for bound in limit))
    return start._replace(inherited=limits, of_pid_1=limits)


def foretell_unit(wanted: Requirement, limit: Limit, facts: UnitFacts) -> Forecast:
    """Return what a service gets, whatever its manager has.

    :param facts: Of which the manager's own limits and defaults are not looked at.
    """
    ranked = rank_statements(wanted.item, facts)
    scenes = [facts._replace(manager=_manage(facts.manager.nr_open, one)) for one in _extremes()]
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


def foretell_shm(size: int, fstab: str) -> Forecast:
    """Return what fstab gives /dev/shm on a host whose memory is not known."""
    least, most = (find_lines(fstab, memory) for memory in (0, 2**60))
    if not least or least[0].value != most[0].value:
        return Forecast(UNKNOWN, reason="its size depends on the memory of the host")
    line = least[0]
    if int(line.value) >= size:
        return Forecast(PASS, line.value, line)
    causes = tuple(find_shm_causes(size, ShmFacts(int(line.value), fstab, 0)))
    return Forecast(FAIL, line.value, line, causes)
