# SPDX-License-Identifier: BSD-2-Clause
"""Judge running processes, chosen by user, name or unit, against a policy."""

from __future__ import annotations

from functools import lru_cache

from .explain_processes import explain_process, explain_representative
from .policy.container_process import blame_container
from .policy.finding import FAIL, PASS, Finding, judge_limits
from .policy.process_causes import merge_limits
from .probe.evidence import Evidence
from .probe.process import read_limits, read_process
from .probe.process_clues import find_ancestors
from .probe.running_containers import find_place
from .probe.systemd_show import show_unit
from .probe.users import read_user
from .unit_facts import Seen, World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .policy.schema import ProcessRule
    from .probe.process import Process

_MOST = 20  # Failing processes listed one by one for each rule; the rest are counted.


def check_processes(
    rules: tuple[ProcessRule, ...], evidence: Evidence, probe: str = "quiet"
) -> Iterator[Finding]:
    """Yield the findings of every process that falls short, or of one that stands for all."""
    if not rules:
        return
    processes = evidence.processes
    world = World(evidence, probe)
    for rule in rules:
        chosen = [process for process in processes if _matches(process, rule)]
        place = f"process:{rule.by}={rule.value}"
        moved = "" if chosen or rule.by != "unit" else rule.value
        if moved:
            chosen = _find_moved(moved)
        if not chosen:
            reason = f"no process with {rule.by} {rule.value} is running"
            yield from judge_limits(place, rule.limits, None, "", reason)
            continue
        seen = list(_look(rule, chosen, rules, moved))
        yield from _judge_all(rule, seen, place, world)


def _look(
    rule: ProcessRule, chosen: list[Process], rules: tuple[ProcessRule, ...], unit: str
) -> Iterator[Seen]:
    """Yield each process with what the rule finds, and with what all rules ask of it."""
    for process in chosen:
        try:
            limits = read_limits(process.pid)
        except (OSError, ValueError):
            continue  # It ended since it was listed, or is a zombie.
        how = f"/proc/{process.pid}/limits"
        place = f"process:{process.pid} ({process.comm})"
        findings = judge_limits(place, rule.limits, limits, how)
        container = ""
        if any(finding.status == FAIL for finding in findings):
            container = find_place(process, find_ancestors(process.pid))
        if container:
            findings = judge_limits(f"{place} in {container}", rule.limits, limits, how)
        asked = [one.limits for one in rules if one is rule or _matches(process, one)]
        yield Seen(process, limits, merge_limits(asked), findings, unit, container)


def _judge_all(rule: ProcessRule, seen: list[Seen], place: str, world: World) -> Iterator[Finding]:
    wrong = [one for one in seen if any(finding.status == FAIL for finding in one.findings)]
    for one in wrong[:_MOST]:
        if one.container:
            yield from (blame_container(finding, one.container) for finding in one.findings)
        else:
            yield from explain_process(one, world)
    if len(wrong) > _MOST:
        reason = f"{len(wrong) - _MOST} more processes of {rule.by} {rule.value} fall short"
        yield from judge_limits(place, rule.limits, None, "", reason)
    if not wrong and seen:
        how = f"/proc/PID/limits, lowest of {len(seen)} processes"
        shown = [
            lowest._replace(
                requirement=lowest.requirement._replace(place=place),
                observation=lowest.observation._replace(how=how),
            )
            for lowest in map(_lowest, zip(*(one.findings for one in seen)))
            if lowest.status == PASS
        ]
        yield from explain_representative(shown, seen, world)


def _lowest(findings: tuple[Finding, ...]) -> Finding:
    return min(findings, key=lambda finding: finding.observation.value or 0)


def _find_moved(unit: str) -> list[Process]:
    """Return the main process of a unit that PAM has moved to the cgroup of a session."""
    shown = show_unit(unit)
    try:
        return [read_process(shown.main_pid)] if shown and shown.main_pid else []
    except OSError:
        return []


def _matches(process: Process, rule: ProcessRule) -> bool:
    if rule.by == "name":
        return process.comm == rule.value[:15]  # The kernel keeps 15 bytes of a name.
    if rule.by == "unit":
        return any(rule.value in line.split("/") for line in process.cgroup.splitlines())
    return process.uid == _find_uid(rule.value)


@lru_cache(maxsize=64)  # Asked for every process.
def _find_uid(name: str) -> int | None:
    user = read_user(name)
    return user.uid if user else None
