# SPDX-License-Identifier: BSD-2-Clause
"""Judge running containers of containerd, pods among them, and what a new one would inherit."""

from __future__ import annotations

from typing import NamedTuple

from ..containers.read import find_maker, find_running
from ..core.cause import Outlook
from ..core.container_owner import own_running
from ..core.finding import FAIL, Finding, Observation, Requirement, judge, judge_limits
from ..host.process import read_limits
from ..processes.units_diagnose import judge_unit
from ..systemd.read import Seen, World
from .causes import blame_base, find_task_causes, pick
from .measure import (
    NAMESPACE,
    find_containerd,
    read_base_spec,
    read_task,
    run_containerd_canary,
)
from .plan import UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..containers.read import RunningContainer
    from ..core.rlimit import Rlimit
    from ..host.look import Look
    from ..host.process import Process
    from .containerd_conf import BaseSpec
    from .policy import ContainerdPolicy

NEW = "new-container:containerd"
_ENGINES = ("containerd", "cri-o")


class Fresh(NamedTuple):
    """The findings of a new container, its limits where they were measured, and what gives them."""

    findings: Sequence[Finding]
    limits: Mapping[str, Rlimit] = {}
    base: BaseSpec | None = None


def check_containerd(policy: ContainerdPolicy, canary: str, look: Look) -> Iterator[Finding]:
    """Yield the findings of every running container, and of a new one as a pod's.

    :param canary: ``never`` leaves a new container unknown.
    """
    new = measure_new(policy, canary, look)
    for one in find_running(look.processes):
        if one.container.engine in _ENGINES and one.container.namespace != NAMESPACE:
            yield from _look(one, policy, new)
    yield from new.findings


def _look(one: RunningContainer, policy: ContainerdPolicy, new: Fresh) -> Iterator[Finding]:
    """Yield the findings of a running container, with why it falls short."""
    pid = one.process.pid
    try:
        limits = read_limits(pid)
    except (OSError, ValueError):
        return  # It ended since it was listed.
    findings = judge_limits(
        f"container:{one.container.name}", policy.limits, limits, f"/proc/{pid}/limits"
    )
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
        return Fresh(judge_limits(NEW, policy.limits, None, "", reason))
    seen = run_containerd_canary(base.limits if base else {})
    if seen.refusal:
        wanted = Requirement(NEW, "start", "value", exact="a container that starts")
        return Fresh([judge(wanted, Observation(seen.refusal, "canary container"))], {}, base)
    if seen.found is None:
        return Fresh(judge_limits(NEW, policy.limits, None, "", seen.reason), {}, base)
    limits = seen.found.limits
    how = "canary container, started by ctr as a pod's"
    findings = judge_limits(NEW, policy.limits, limits, how)
    told = _explain(findings, policy, limits, process, base, look)
    return Fresh(list(told), limits, base)


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
