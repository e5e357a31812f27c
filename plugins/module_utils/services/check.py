# SPDX-License-Identifier: BSD-2-Clause
"""Judge what systemd's services get against a policy: those that run, new ones, and of users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Tuple

from ..core.finding import FAIL, PASS, Finding, Observation, Requirement, judge, judge_limits
from ..core.values import Rlimit, format_pair
from ..host.look import Look, Process, find_user_managers, read_limits
from ..host.users import find_owner, name_user
from ..processes.diagnose import explain_process, explain_representative
from ..systemd.read import Seen, World
from ..systemd.tasks import Level, cut_levels
from ..systemd.tasks_read import read_levels
from ..systemd.unit_read import read_unit_files
from .diagnose import (
    explain_idle_tasks,
    explain_idle_unit,
    explain_new_service,
    explain_new_user_service,
    explain_tasks,
    own_tasks,
)
from .measure import NewService, start_service
from .policy import TASKS, ServicesPolicy, UnitRule, find_rule
from .read import find_owned, is_template

TYPE_CHECKING = False
if TYPE_CHECKING:
    Told = Tuple[Finding, Seen]

PLACE, NEW = "service:", "new-service:"
SYSTEM = "system"
"""Whose new services are meant, where it is not a user."""


def check_services(
    policy: ServicesPolicy, canary: str, look: Look, probe: str = "quiet"
) -> Iterator[Finding]:
    """Yield the findings of the units that a policy names, of new services, and of logind.

    :param canary: ``never`` leaves new services unknown.
    """
    processes = look.processes
    world = World(look, probe)
    for owner, units in find_owned(policy.units, processes).items():
        yield from _check_unit(owner, units, policy, world)
    if policy.default.limits or policy.default.tasks is not None:
        yield from _check_new(policy.default, canary, world)
    if policy.user_default.limits or policy.user_default.tasks is not None:
        for uid in find_user_managers(processes):
            yield from _check_new_of_user(policy.user_default, canary, uid, world)
    if policy.remove_ipc is not None:
        from .logind_check import check_logind

        runs = any(one.comm == "systemd-logind" for one in processes)
        yield check_logind(policy.remove_ipc, runs)


def _check_unit(
    owner: str, units: Mapping[str, Sequence[Process]], policy: ServicesPolicy, world: World
) -> Iterator[Finding]:
    """Yield the findings of what runs of a unit, or what its next start will give."""
    moved = [] if units else world.find_moved(owner)
    if moved:
        units = {owner: moved}
    for unit, members in units.items():
        rule, place = find_rule(policy.units, unit, owner), f"{PLACE}{unit}"
        if unit.endswith(".service"):
            yield from _check_running(place, unit, rule, members, world)
        yield from _check_tasks(place, "" if moved else unit, rule, members[0])
    if units:
        return
    place, reason, rule = (
        f"{PLACE}{owner}",
        _find_reason(owner),
        find_rule(policy.units, owner, owner),
    )
    findings = judge_limits(place, rule.limits, None, "", reason)
    yield from explain_idle_unit(findings, owner, rule.limits, world)
    if rule.tasks is not None:
        unseen = judge(_require_tasks(place, rule.tasks), Observation(None, "", reason))
        yield explain_idle_tasks(unseen, owner)


def _find_reason(unit: str) -> str:
    if unit.endswith(".slice"):
        return "no slice of that name has a process"
    main = read_unit_files(unit).main
    if main is None:
        return f"there is no {unit} on this host"
    if not main.text:
        return f"{main.path} masks it"
    return "no instance is running" if is_template(unit) else "it is not running"


def _require_tasks(place: str, tasks: int) -> Requirement:
    return Requirement(place, TASKS, "value", tasks)


def _check_tasks(place: str, unit: str, rule: UnitRule, process: Process) -> Iterator[Finding]:
    """Yield whether a unit may hold enough tasks: its own cgroup and those above it.

    :param unit: Empty for one whose process PAM has moved out of its cgroup.
    """
    if rule.tasks is not None:
        levels = read_levels(process.cgroup)
        levels = cut_levels(levels, unit) if unit else levels
        yield explain_tasks(_judge_tasks(place, rule.tasks, levels), levels)


def _judge_tasks(place: str, tasks: int, levels: Sequence[Level]) -> Finding:
    wanted = _require_tasks(place, tasks)
    if not levels:
        return judge(wanted, Observation(None, "", "its cgroup bounds no tasks that can be read"))
    lowest = min(levels, key=lambda level: level.most)
    return judge(wanted, Observation(lowest.most, lowest.path))


def _check_running(
    place: str, unit: str, rule: UnitRule, members: Sequence[Process], world: World
) -> Iterator[Finding]:
    """Yield the findings of one service: of root's processes, and of users', who has least.

    A job of cron lives in cron's service, and its user may lower what it has.
    """
    seen = list(_look(place, unit, rule, members, world))
    if not seen:
        yield from judge_limits(place, rule.limits, None, "", "it ended while it was looked at")
        return
    columns = [list(zip(column, seen)) for column in zip(*(one.findings for one in seen))]
    for of_root in (True, False):
        worst = [_find_worst(column, of_root) for column in columns]
        for one in seen:
            mine = [finding for finding, who in filter(None, worst) if who is one]
            yield from explain_process(one._replace(findings=mine), world) if mine else ()
    fine = [
        min((finding for finding, _one in column if finding.status == PASS), key=_value)
        for column in columns
        if not _find_worst(column, True) and any(one.status == PASS for one, _seen in column)
    ]
    yield from explain_representative(fine, seen, world) if fine else ()


def _find_worst(column: Sequence[Told], of_root: bool) -> Told | None:
    """Return the lowest of what fails, of root's processes or of users'."""
    failing = [
        (finding, one)
        for finding, one in column
        if finding.status == FAIL and bool(one.owner) != of_root
    ]
    return min(failing, key=lambda pair: _value(pair[0]), default=None)


def _value(finding: Finding) -> int:
    value = finding.observation.value
    return value if isinstance(value, int) else 0


def _look(
    place: str, unit: str, rule: UnitRule, members: Sequence[Process], world: World
) -> Iterator[Seen]:
    """Yield each process with what the rule finds; it says where systemctl show says otherwise."""
    shown = world.show_unit(unit)
    for process in members:
        try:
            limits = read_limits(process.pid)
        except (OSError, ValueError):
            continue  # It ended since it was listed, or is a zombie.
        how = f"/proc/{process.pid}/limits, lowest of {len(members)} processes"
        if len(members) == 1:
            how = f"/proc/{process.pid}/limits"
        findings = [
            _mention(finding, limits, shown.limits) if shown else finding
            for finding in judge_limits(place, rule.limits, limits, how)
        ]
        owner = ""
        if any(finding.status == FAIL for finding in findings):
            try:
                owner = find_owner(process)
            except (OSError, ValueError):
                continue  # It has ended, and nobody can tell whose it was.
        yield Seen(process, limits, rule.limits, findings, unit, owner=owner)


def _mention(finding: Finding, limits: dict[str, Rlimit], shown: dict[str, Rlimit]) -> Finding:
    """Say where the service manager claims something else than what a process has."""
    item, seen = finding.requirement.item, finding.observation
    if shown[item] == limits[item]:
        return finding
    how = f"{seen.how}; systemctl show says {format_pair(item, shown[item])}"
    return finding._replace(observation=seen._replace(how=how))


def _check_new(rule: UnitRule, canary: str, world: World) -> Iterator[Finding]:
    """Yield what a service of the system gets that states nothing, by starting one."""
    place = f"{NEW}{SYSTEM}"
    new, reason = _start(canary, None)
    findings = judge_limits(place, rule.limits, new.limits or None, _describe(new), reason)
    yield from explain_new_service(findings, rule.limits, new.limits or None, world)
    if rule.tasks is not None:
        yield _judge_new_tasks(place, rule.tasks, new, reason, None)


def _start(canary: str, uid: int | None) -> tuple[NewService, str]:
    """Return a service that was just started, or why there is none."""
    if canary == "never":
        return NewService(), "no service was started (canary: never)"
    new = start_service(uid)
    return new, new.reason


def _describe(new: NewService) -> str:
    return f"a service that was started to see, pid {new.process.pid}" if new.process else ""


def _judge_new_tasks(
    place: str, tasks: int, new: NewService, reason: str, uid: int | None
) -> Finding:
    if reason:
        return judge(_require_tasks(place, tasks), Observation(None, "", reason))
    return explain_tasks(_judge_tasks(place, tasks, new.levels), new.levels, uid)


def _check_new_of_user(rule: UnitRule, canary: str, uid: int, world: World) -> Iterator[Finding]:
    """Yield what a service of a user's manager gets that states nothing, by starting one."""
    place = f"{NEW}{name_user(uid)}"
    new, reason = _start(canary, uid)
    findings = judge_limits(place, rule.limits, new.limits or None, _describe(new), reason)
    if new.process:
        owner = name_user(uid) if uid else ""
        seen = Seen(new.process, new.limits, rule.limits, findings, owner=owner)
        findings = explain_new_user_service(seen, uid, world)
    yield from findings
    if rule.tasks is not None:
        yield own_tasks(_judge_new_tasks(place, rule.tasks, new, reason, uid), new.levels, uid)
