# SPDX-License-Identifier: BSD-2-Clause
"""Judge running containers of containerd, pods among them, and what a new one would inherit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..containers.findings import (
    NEVER,
    ContainerLimits,
    judge_canary,
    judge_container,
    judge_container_unknown,
)
from ..containers.policy import TASKS, ContainerPolicy
from ..containers.read import RunningContainer, find_maker
from ..containers.spec import Started
from ..containers.tasks import Bounds, Given, split_levels
from ..core.cause import Cause, Outlook
from ..core.finding import FAIL, Finding
from ..core.process_owner import own_running
from ..core.values import NamedTuple, Rlimit
from ..host.look import Look, Process, read_limits
from ..host.users import name_user
from ..processes.diagnose import tell
from ..processes.units_diagnose import judge_unit
from ..systemd.read import Seen, World
from ..systemd.tasks import Level
from ..systemd.tasks_read import read_levels
from .base_spec import BaseSpec
from .causes import (
    blame_base,
    blame_base_tasks,
    find_task_causes,
    find_tasks_causes,
    leave_kubelet_out,
)
from .measure import (
    NAME,
    describe_absence,
    find_containerd,
    find_containers,
    read_base_spec,
    read_task,
    run_containerd_canary,
)
from .plan import UNIT

NEW = "new-container:containerd"


class Fresh(NamedTuple):
    """The findings of a new container, its limits where they were measured, and what gives them."""

    findings: Sequence[Finding]
    limits: Mapping[str, Rlimit] = {}
    base: BaseSpec | None = None
    tasks: Sequence[Cause] = ()
    """Why a new one's own bound on tasks is too low, beside the base specification."""
    levels: Sequence[Level] = ()


def check_containerd(policy: ContainerPolicy, canary: str, look: Look) -> Iterator[Finding]:
    """Yield the findings of every running container, and of a new one as a pod's.

    :param canary: ``never`` leaves a new container unknown.
    """
    new = measure_new(policy, canary, look)
    for one in find_containers(look.processes):
        yield from look_at_running(one, policy, new)
    yield from new.findings


def look_at_running(
    one: RunningContainer, policy: ContainerPolicy, new: Fresh
) -> Iterator[Finding]:
    """Yield the findings of a running container, with why it falls short."""
    pid, levels = one.process.pid, tuple(read_levels(one.process.cgroup))
    try:
        seen = ContainerLimits(read_limits(pid), None, levels)
    except (OSError, ValueError):
        return  # It ended since it was listed.
    place, how = name_running(one), f"/proc/{pid}/limits"
    findings = judge_container(place, policy, seen, how)
    if all(finding.status != FAIL for finding in findings):
        yield from findings
        return
    task, maker = read_task(one), find_maker(one)
    bounds = split_levels(levels, one.container.id)
    for finding in findings:
        yield own_running(_explain_running(finding, task, bounds, new), maker)


def name_running(one: RunningContainer) -> str:
    """Return the place of a running container of root's, or of a user's own."""
    engine, _slash, rest = one.container.name.partition("/")
    owner = f"{name_user(one.owner)}/" if one.owner else ""
    return f"container:{engine}/{owner}{rest}"


def _explain_running(finding: Finding, task: Started, bounds: Bounds, new: Fresh) -> Finding:
    """Return the finding of a running container with why it falls short."""
    wanted, has, fresh = finding.requirement, finding.observation.value, new.limits
    if finding.status != FAIL or not isinstance(has, int):
        return finding
    if wanted.item == TASKS:
        given = Given(task.tasks, task.limits is not None)
        fewer = [*blame_base_tasks(wanted, new.base), *new.tasks]
        own = find_tasks_causes(wanted, bounds, task, fewer)
        return _explain_tasks(finding, given, own, bounds)
    same = (one for one in new.findings if one.requirement._replace(place=wanted.place) == wanted)
    causes = [cause for one in same for cause in one.causes]
    measured = wanted.pick(fresh[wanted.item]) if wanted.item in fresh else None
    return finding._replace(causes=find_task_causes(wanted, has, task, causes, measured))


def _explain_tasks(
    finding: Finding, given: Given, causes: Sequence[Cause], bounds: Bounds
) -> Finding:
    """Return the finding with its causes, and with those of the units that systemd has above it."""
    from ..services.diagnose import explain_container_tasks  # Where tasks are asked for.

    return explain_container_tasks(finding, leave_kubelet_out(bounds), given, causes)


def measure_new(policy: ContainerPolicy, canary: str, look: Look) -> Fresh:
    """Return what a new container has, with why it falls short."""
    process = find_containerd(look.processes)
    reason = "" if process else describe_absence(look.processes)
    if canary == "never":
        reason = NEVER
    base = None
    try:
        base = read_base_spec()
    except (OSError, ValueError) as error:
        reason = reason or str(error)
    if reason or process is None:
        return Fresh(judge_container_unknown(NEW, policy, reason))
    seen = run_containerd_canary(base)
    findings = judge_canary(NEW, policy, seen, "canary container, started by ctr as a pod's")
    if seen.found is None:
        return Fresh(findings, {}, base)
    told = list(_explain(findings, policy, seen.found, process, base, look))
    return Fresh(told, seen.found.limits, base, levels=seen.found.levels)


def _explain(
    findings: list[Finding],
    policy: ContainerPolicy,
    seen: ContainerLimits,
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
        told = judge_unit(Seen(process, seen.limits, asked, findings), UNIT, world)
    except (OSError, ValueError):
        told = {}
    for finding in findings:
        wanted = finding.requirement
        if wanted.item == TASKS:
            given, bounds = Given(base.tasks if base else None), split_levels(seen.levels, NAME)
            yield _explain_tasks(finding, given, blame_base_tasks(wanted, base), bounds)
            continue
        based = blame_base(wanted, base, policy.limits.get(wanted.item))
        if based:
            yield finding._replace(causes=(based,), outlook=Outlook("", FAIL, FAIL))
        else:
            yield tell(finding, told)
