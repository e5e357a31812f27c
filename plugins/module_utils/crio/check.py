# SPDX-License-Identifier: BSD-2-Clause
"""Judge running containers of CRI-O, and what a new one gets by crio's own word."""

from __future__ import annotations

from collections.abc import Iterator

from ..containerd.check import Fresh, look_at_running
from ..containers.cgroup import CRIO
from ..containers.findings import (
    ContainerLimits,
    judge_container,
    judge_container_unknown,
    judge_start,
)
from ..containers.policy import TASKS, ContainerPolicy
from ..containers.read import find_running
from ..core.cause import Cause, Outlook
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, judge
from ..core.report import START
from ..core.values import Rlimit
from ..host.look import Look, Process, format_time, read_limits, read_start_time
from ..kernel.host_read import KernelRead, find_nr_open_at_boot
from ..podman.containers_conf import ConfError, Stated, find_tasks
from ..systemd.tasks import Level
from .causes import UNIT, CrioFacts, describe_excess, find_crio_causes, find_excess, foresee
from .crio_conf import DEFAULT_TASKS, read_all
from .read import TOLD, ask_crio, find_crio, read_ceilings, read_conf_files, read_options

NEW = "new-container:crio"
ABSENT = f"no crio of {UNIT} is running on this host"
_HIDDEN = "no file states nofile, and Go hides the soft limit that crio hands down: state it"


def check_crio(policy: ContainerPolicy, look: Look) -> Iterator[Finding]:
    """Yield the findings of every running container, and of a new one."""
    new = measure_new(policy, look)
    for one in find_running(look.processes, (CRIO,)):
        yield from look_at_running(one, policy, new)
    yield from new.findings


def measure_new(policy: ContainerPolicy, look: Look) -> Fresh:
    """Return what a new container gets, with why it falls short."""
    process = find_crio(look.processes)
    if process is None:
        return Fresh(judge_container_unknown(NEW, policy, ABSENT))
    try:
        facts, told = gather_crio(process, look), ask_crio()
        inherited = read_limits(process.pid)
    except (OSError, ValueError) as error:
        return Fresh(judge_container_unknown(NEW, policy, str(error)))
    stops = [describe_excess(one, facts) for one in find_excess((told,), facts).values()]
    if stops:
        refused = judge_start(NEW, "; ".join(stops), TOLD)
        return Fresh([_explain(refused, facts, policy, look)])
    seen = find_limits(told, inherited)
    findings = [_hide(one, told) for one in judge_container(NEW, policy, seen, TOLD)]
    findings = [_explain(one, facts, policy, look) for one in findings]
    fewer = [cause for one in findings if one.requirement.item == TASKS for cause in one.causes]
    return Fresh(findings, seen.limits, tasks=fewer)


def gather_crio(process: Process, look: Look) -> CrioFacts:
    """Return all that decides a new container.

    :raises OSError: If a file cannot be read.
    """
    options, ceilings = read_options(process.pid), read_ceilings(process)
    since = format_time(read_start_time(process))
    facts = CrioFacts((), look.at(KernelRead).nr_open, None, options, ceilings, since)
    try:
        return facts._replace(stated=read_all(read_conf_files()))
    except ConfError as error:
        return facts._replace(broken=error)


def find_limits(told: Stated, inherited: dict[str, Rlimit]) -> ContainerLimits:
    """Return what crio gives: its list, what it has itself, and its bound on tasks."""
    stated = {one.item: one.limit for one in (told.block.ulimits if told.block else ())}
    most = find_tasks(told.tasks, DEFAULT_TASKS)
    levels = () if most is None else (Level("crio", TOLD, most),)
    return ContainerLimits({**inherited, **stated}, None, levels)


def _hide(finding: Finding, told: Stated) -> Finding:
    """Return the finding, unknown where crio's own soft limit is not what it hands down."""
    wanted = finding.requirement
    is_stated = any(one.item == "nofile" for one in (told.block.ulimits if told.block else ()))
    if is_stated or (wanted.item, wanted.bound, finding.status) != ("nofile", "soft", PASS):
        return finding
    return judge(wanted, Observation(None, "", _HIDDEN))


def _explain(finding: Finding, facts: CrioFacts, policy: ContainerPolicy, look: Look) -> Finding:
    """Return the finding with its causes, and with what the files give the next crio."""
    if finding.status == UNKNOWN:
        return finding
    wanted = finding.requirement
    later = facts._replace(nr_open=find_nr_open_at_boot(look))
    # Where no file states it, the next crio has what this one has.
    soon, boot = (foresee(wanted, one) or finding.status for one in (facts, later))
    causes: tuple[Cause, ...] = ()
    if FAIL in (finding.status, soon):
        causes = find_crio_causes(wanted, facts, policy)
    elif boot == FAIL:
        causes = find_crio_causes(wanted._replace(item=START), later, policy)
    return finding._replace(causes=causes, outlook=Outlook("", soon, boot))
