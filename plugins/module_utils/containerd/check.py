# SPDX-License-Identifier: BSD-2-Clause
"""Judge running containers of containerd, pods among them, and what a new one would inherit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..containers.findings import judge_tasks
from ..containers.read import RunningContainer, find_maker
from ..containers.tasks import Bounds, split_levels
from ..core.cause import Cause, Outlook
from ..core.container_owner import own_running
from ..core.finding import FAIL, UNKNOWN, Finding, Observation, Requirement, judge, judge_limits
from ..core.named import NamedTuple
from ..core.rlimit import UNLIMITED, Rlimit
from ..host.process import Process, read_limits
from ..processes.units_diagnose import judge_unit
from ..systemd.read import Seen, World
from ..systemd.tasks_read import read_levels
from .causes import (
    blame_base,
    blame_base_tasks,
    find_task_causes,
    find_tasks_causes,
    is_of_kubelet,
    pick,
)
from .measure import (
    NAME,
    find_containerd,
    find_containers,
    read_base_spec,
    read_task,
    run_containerd_canary,
)
from .plan import UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.look import Look
    from ..systemd.tasks import Level
    from .containerd_conf import BaseSpec
    from .policy import ContainerdPolicy

NEW = "new-container:containerd"


class Fresh(NamedTuple):
    """The findings of a new container, its limits where they were measured, and what gives them."""

    findings: Sequence[Finding]
    limits: Mapping[str, Rlimit] = {}
    base: BaseSpec | None = None
    levels: Sequence[Level] = ()


def check_containerd(policy: ContainerdPolicy, canary: str, look: Look) -> Iterator[Finding]:
    """Yield the findings of every running container, and of a new one as a pod's.

    :param canary: ``never`` leaves a new container unknown.
    """
    new = measure_new(policy, canary, look)
    for one in find_containers(look.processes):
        yield from _look(one, policy, new)
    yield from new.findings


def _look(one: RunningContainer, policy: ContainerdPolicy, new: Fresh) -> Iterator[Finding]:
    """Yield the findings of a running container, with why it falls short."""
    pid = one.process.pid
    try:
        limits = read_limits(pid)
    except (OSError, ValueError):
        return  # It ended since it was listed.
    place = f"container:{one.container.name}"
    findings = judge_limits(place, policy.limits, limits, f"/proc/{pid}/limits")
    yield from _look_at_tasks(place, one, policy, new)
    failing = any(finding.status == FAIL for finding in findings)
    owner = find_maker(one) if failing else ""
    task = read_task(one) if failing else None
    for finding in findings:
        wanted, has = finding.requirement, finding.observation.value
        if task is None or finding.status != FAIL or not isinstance(has, int):
            yield own_running(finding, owner)
            continue
        fresh = new.limits.get(wanted.item)
        causes = [
            cause
            for other in new.findings
            for cause in other.causes
            if _is_same(other.requirement, wanted)
        ]
        found = find_task_causes(wanted, has, task, causes, pick(wanted, fresh) if fresh else None)
        yield own_running(finding._replace(causes=found), owner)


def _look_at_tasks(
    place: str, one: RunningContainer, policy: ContainerdPolicy, new: Fresh
) -> Iterator[Finding]:
    """Yield the finding on the tasks of a running container, with why they are too few."""
    levels = read_levels(one.process.cgroup)
    for finding in judge_tasks(place, policy.tasks, levels):
        if finding.status != FAIL:
            yield finding
            continue
        task, bounds = read_task(one), split_levels(levels, one.container.id)
        causes = find_tasks_causes(finding.requirement, bounds, task, new.base)
        told = _explain_tasks(finding, task.tasks, causes, bounds, task.spec is not None)
        yield own_running(told, find_maker(one))


def _explain_tasks(
    finding: Finding,
    stated: int | None,
    causes: Sequence[Cause],
    bounds: Bounds,
    known: bool = True,
) -> Finding:
    """Return the finding with its causes, and with those of the units that systemd has above it.

    :param stated: What its specification bounds it with, ``None`` where that is nothing.
    :param known: Whether that is known.
    """
    if finding.status == UNKNOWN:
        return finding
    from ..services.diagnose import explain_container_tasks  # Where tasks are asked for.

    is_stated = stated is not None or not known
    units = [one for one in bounds.list_units(is_stated) if not is_of_kubelet(one)]
    given = UNLIMITED if stated is None else stated
    return explain_container_tasks(finding, given if known else None, causes, units)


def _is_same(one: Requirement, other: Requirement) -> bool:
    return (one.item, one.bound) == (other.item, other.bound)


def measure_new(policy: ContainerdPolicy, canary: str, look: Look) -> Fresh:
    """Return what a new container has, with why it falls short."""
    process = find_containerd(look.processes)
    reason = "" if process else f"no containerd of {UNIT} is running on this host"
    if canary == "never":
        reason = "no container was started (canary: never)"
    base = None
    try:
        base = read_base_spec()
    except (OSError, ValueError) as error:
        reason = reason or str(error)
    if reason or process is None:
        return Fresh(_judge_unknown(policy, reason))
    seen = run_containerd_canary(base)
    if seen.refusal:
        wanted = Requirement(NEW, "start", "value", exact="a container that starts")
        return Fresh([judge(wanted, Observation(seen.refusal, "canary container"))], {}, base)
    if seen.found is None:
        return Fresh(_judge_unknown(policy, seen.reason), {}, base)
    limits, levels = seen.found.limits, seen.found.levels
    how = "canary container, started by ctr as a pod's"
    findings = judge_limits(NEW, policy.limits, limits, how)
    told = list(_explain(findings, policy, limits, process, base, look))
    bounds, stated = split_levels(levels, NAME), base.tasks if base else None
    for finding in judge_tasks(NEW, policy.tasks, levels):
        causes = blame_base_tasks(finding.requirement, base)
        told.append(_explain_tasks(finding, stated, causes, bounds))
    return Fresh(told, limits, base, levels)


def _judge_unknown(policy: ContainerdPolicy, reason: str) -> list[Finding]:
    """Return the findings of a new container that could not be seen."""
    findings = judge_limits(NEW, policy.limits, None, "", reason)
    return [*findings, *judge_tasks(NEW, policy.tasks, (), reason)]


def _explain(
    findings: list[Finding],
    policy: ContainerdPolicy,
    limits: Mapping[str, Rlimit],
    process: Process,
    base: BaseSpec | None,
    look: Look,
) -> Iterator[Finding]:
    """Yield the findings with what the base specification or containerd's unit did to them."""
    asked = {
        item: limit for item, limit in policy.limits.items() if not base or item not in base.limits
    }
    world = World(look)
    try:
        told = judge_unit(Seen(process, limits, asked, findings), UNIT, world)
    except (OSError, ValueError):
        told = {}
    for finding in findings:
        wanted = finding.requirement
        based = blame_base(wanted, base)
        verdict = told.get(wanted.item)
        if based:
            yield finding._replace(causes=(based,), outlook=Outlook("", FAIL, FAIL))
        elif verdict:
            soon, boot = (
                judge(wanted, Observation(pick(wanted, pair), "")).status if pair else ""
                for pair in (verdict.next_start, verdict.at_boot)
            )
            causes = verdict.causes if FAIL in (finding.status, soon, boot) else ()
            yield finding._replace(causes=causes, outlook=Outlook("", soon, boot))
        else:
            yield finding
