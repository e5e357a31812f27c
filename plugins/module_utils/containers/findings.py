# SPDX-License-Identifier: BSD-2-Clause
"""Judge a container: its limits, the size of its /dev/shm, how many tasks its cgroups allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.finding import Finding, Observation, Requirement, judge, judge_limits, require_limits
from .policy import SHM, TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.rlimit import Rlimit
    from ..systemd.tasks import Level
    from .policy import Asked


def require_container(place: str, asked: Asked) -> list[Requirement]:
    """Return what a policy demands of a container."""
    tasks = _require_tasks(place, asked.tasks)
    return [*require_limits(place, asked.limits), *_require_shm(place, asked), *tasks]


def judge_container(
    place: str,
    asked: Asked,
    limits: Mapping[str, Rlimit],
    shm_size: int | None,
    how: str,
    levels: Sequence[Level] = (),
) -> list[Finding]:
    """Return the findings of a container that was seen.

    :param shm_size: In bytes; ``None`` where it has no /dev/shm of its own.
    :param levels: The cgroups that bound its tasks.
    """
    reason = "" if shm_size is not None else "it has no /dev/shm of its own"
    seen = Observation(shm_size, how, reason)
    findings = judge_limits(place, asked.limits, limits, how)
    findings += [judge(wanted, seen) for wanted in _require_shm(place, asked)]
    return [*findings, *judge_tasks(place, asked.tasks, levels)]


def judge_container_unknown(place: str, asked: Asked, reason: str) -> list[Finding]:
    """Return the findings of a container that could not be seen."""
    findings = judge_limits(place, asked.limits, None, "", reason)
    unseen = Observation(None, "", reason)
    findings += [judge(wanted, unseen) for wanted in _require_shm(place, asked)]
    return [*findings, *judge_tasks(place, asked.tasks, (), reason)]


def judge_tasks(
    place: str, tasks: int | None, levels: Sequence[Level], reason: str = ""
) -> list[Finding]:
    """Return the finding on the tasks of a container, of which its lowest bound counts.

    :param tasks: How many it shall have; nothing is found where that is not asked.
    :param reason: Why there are no levels.
    """
    lowest = min(levels, key=lambda level: level.most, default=None)
    if lowest is None:
        why = reason or "its cgroup bounds no tasks that can be read"
        seen = Observation(None, "", why)
    else:
        seen = Observation(lowest.most, lowest.path)
    return [judge(wanted, seen) for wanted in _require_tasks(place, tasks)]


def _require_tasks(place: str, tasks: int | None) -> list[Requirement]:
    return [] if tasks is None else [Requirement(place, TASKS, "value", tasks)]


def _require_shm(place: str, asked: Asked) -> list[Requirement]:
    if asked.shm_size is None:
        return []
    return [Requirement(place, SHM, "value", asked.shm_size, unit="bytes")]
