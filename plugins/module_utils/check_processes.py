# SPDX-License-Identifier: BSD-2-Clause
"""Judge running processes, chosen by user, name or unit, against a policy."""

from __future__ import annotations

from .policy.finding import FAIL, PASS, Finding, judge_limits
from .probe.process import find_processes, read_limits
from .probe.users import read_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .policy.schema import ProcessRule
    from .probe.process import Process

_MOST = 20  # Failing processes listed one by one for each rule; the rest are counted.


def check_processes(rules: tuple[ProcessRule, ...]) -> Iterator[Finding]:
    """Yield the findings of every process that falls short, or of one that stands for all."""
    if not rules:
        return
    processes = list(find_processes())
    for rule in rules:
        chosen = [process for process in processes if _matches(process, rule)]
        place = f"process:{rule.by}={rule.value}"
        if not chosen:
            reason = f"no process with {rule.by} {rule.value} is running"
            yield from judge_limits(place, rule.limits, None, "", reason)
        else:
            yield from _judge_all(rule, chosen, place)


def _judge_all(rule: ProcessRule, chosen: list[Process], place: str) -> Iterator[Finding]:
    judged = []
    for process in chosen:
        try:
            limits = read_limits(process.pid)
        except (OSError, ValueError):
            continue  # It ended since it was listed, or is a zombie.
        how = f"/proc/{process.pid}/limits"
        judged.append(
            judge_limits(f"process:{process.pid} ({process.comm})", rule.limits, limits, how)
        )
    wrong = [found for found in judged if any(finding.status == FAIL for finding in found)]
    for found in wrong[:_MOST]:
        yield from found
    if len(wrong) > _MOST:
        reason = f"{len(wrong) - _MOST} more processes of {rule.by} {rule.value} fall short"
        yield from judge_limits(place, rule.limits, None, "", reason)
    if not wrong and judged:
        how = f"/proc/PID/limits, lowest of {len(judged)} processes"
        yield from (
            lowest._replace(
                requirement=lowest.requirement._replace(place=place),
                observation=lowest.observation._replace(how=how),
            )
            for lowest in map(_lowest, zip(*judged))
            if lowest.status == PASS
        )


def _lowest(findings: tuple[Finding, ...]) -> Finding:
    return min(findings, key=lambda finding: finding.observation.value or 0)


def _matches(process: Process, rule: ProcessRule) -> bool:
    if rule.by == "name":
        return process.comm == rule.value[:15]  # The kernel keeps 15 bytes of a name.
    if rule.by == "unit":
        return any(rule.value in line.split("/") for line in process.cgroup.splitlines())
    user = read_user(rule.value)
    return user is not None and process.uid == user.uid
