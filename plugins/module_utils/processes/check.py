# SPDX-License-Identifier: BSD-2-Clause
"""Judge running processes, chosen by user, name or unit, against a policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from ..containers.process import blame_container
from ..containers.read import find_place
from ..core.cgroup import find_home, list_units
from ..core.finding import FAIL, PASS, Finding, judge_limits
from ..core.process_owner import MAKER
from ..core.reader import Limit
from ..core.values import Rlimit
from ..host.look import Look, Process, read_limits
from ..host.users import find_owner, name_owners, read_user
from ..systemd.read import Seen, World
from .causes import merge_limits
from .diagnose import explain_process, explain_representative
from .policy import ProcessRule
from .read import find_ancestors

_MOST = 20
"""Failing processes of root, and of users, listed one by one for each rule; the rest is summed."""


def check_processes(
    rules: tuple[ProcessRule, ...], look: Look, probe: str = "quiet"
) -> Iterator[Finding]:
    """Yield the findings of every process that falls short, or of one that stands for all."""
    if not rules:
        return
    processes = look.processes
    world = World(look, probe)
    for rule in rules:
        chosen = [process for process in processes if _matches(process, rule)]
        place = f"process:{rule.by}={rule.value}"
        moved = (
            [] if rule.by != "unit" or _holds(rule.value, chosen) else world.find_moved(rule.value)
        )
        seen = list(_look(rule, chosen, rules, "", look.limits_by_pid))
        seen += _look(rule, moved, rules, rule.value, look.limits_by_pid)
        if not seen:
            reason = f"no process with {rule.by} {rule.value} is running"
            yield from judge_limits(place, rule.limits, None, "", reason)
            continue
        yield from _judge_all(rule, seen, place, world)


def _holds(unit: str, processes: list[Process]) -> bool:
    """Tell whether one is in a unit of the system; a user may call cgroups like that."""
    return any(unit in list_units(process.cgroup) for process in processes)


def _look(
    rule: ProcessRule,
    chosen: list[Process],
    rules: tuple[ProcessRule, ...],
    unit: str,
    known: Mapping[int, Mapping[str, Rlimit]],
) -> Iterator[Seen]:
    """Yield each process with what the rule finds, and with what all rules ask of it.

    Thousands share a set of limits, which is judged once: :func:`parse_proc_limits` returns the
    same mapping for all of them.
    """
    judged: dict[int, tuple[Mapping[str, Rlimit], list[Finding], bool]] = {}
    merged: dict[tuple[bool, ...], dict[str, Limit]] = {}
    for process in chosen:
        try:
            limits = known.get(process.pid) or read_limits(process.pid)
        except (OSError, ValueError):
            continue  # It ended since it was listed, or is a zombie.
        if id(limits) not in judged:
            judged[id(limits)] = _judge(rule, limits)
        _limits, findings, fails = judged[id(limits)]
        container = owner = ""
        if fails:
            try:
                owner = find_owner(process)
            except (OSError, ValueError):
                continue  # It has ended, and nobody can tell whose it was.
            container = find_place(process, find_ancestors(process.pid))
            inside = f" in {container}" if container else ""
            place = f"process:{process.pid} ({process.comm}){inside}"
            findings = judge_limits(place, rule.limits, limits, f"/proc/{process.pid}/limits")
        which = tuple(one is rule or _matches(process, one) for one in rules)
        if which not in merged:
            merged[which] = merge_limits([one.limits for one, is_in in zip(rules, which) if is_in])
        is_named_by_user = not unit and not _is_roots_choice(process, rule)
        yield Seen(
            process, limits, merged[which], findings, unit, container, owner, is_named_by_user
        )


def _is_roots_choice(process: Process, rule: ProcessRule) -> bool:
    """Tell whether a rule does not mean a unit, or the unit is the system's; users name theirs."""
    return rule.by != "unit" or rule.value in list_units(process.cgroup)


def _judge(
    rule: ProcessRule, limits: Mapping[str, Rlimit]
) -> tuple[Mapping[str, Rlimit], list[Finding], bool]:
    """Return what a rule finds in a set of limits, whosever they are, and whether it fails.

    The limits go along, so that their identity is not another's while the findings are kept.
    """
    findings = judge_limits("", rule.limits, limits, "")
    return limits, findings, any(finding.status == FAIL for finding in findings)


def _judge_all(rule: ProcessRule, seen: list[Seen], place: str, world: World) -> Iterator[Finding]:
    wrong: list[Seen] = []
    rest: list[Seen] = []
    for one in seen:
        fails = any(finding.status == FAIL for finding in one.findings)
        (wrong if fails else rest).append(one)
    for group in (_take_turns(wrong, True), _take_turns(wrong, False)):
        for one in group[:_MOST]:
            if one.container:
                owner = one.owner or MAKER
                yield from (blame_container(each, one.container, owner) for each in one.findings)
            else:
                yield from explain_process(one, world)
        if len(group) > _MOST:
            yield from _sum_up(group[_MOST:], place, f"{rule.by} {rule.value}")
    if rest and all(one.owner for one in wrong):  # What users start hides nothing of root's.
        how = f"/proc/PID/limits, lowest of {len(rest)} {'other ' if wrong else ''}processes"
        shown = [
            lowest._replace(
                requirement=lowest.requirement._replace(place=place),
                observation=lowest.observation._replace(how=how),
            )
            for lowest in map(_lowest, zip(*(one.findings for one in rest)))
            if lowest.status == PASS
        ]
        yield from explain_representative(shown, rest, world)


def _take_turns(wrong: list[Seen], of_root: bool) -> list[Seen]:
    """Return the processes of root, or those of users, each user's first one before any second.

    So nobody who starts many keeps those of others from being told.
    """
    turns: Counter[str] = Counter()
    ranked = []
    for one in wrong:
        if bool(one.owner) != of_root:
            ranked.append((turns[one.owner], one))
            turns[one.owner] += 1
    return [one for _turn, one in sorted(ranked, key=lambda pair: pair[0])]


def _sum_up(rest: list[Seen], place: str, which: str) -> Iterator[Finding]:
    """Yield what the processes lack together that are not told one by one."""
    how = f"/proc/PID/limits, lowest of {len(rest)} more processes of {which} that fall short"
    for column in zip(*(one.findings for one in rest)):
        failing = [(one, each) for one, each in zip(rest, column) if each.status == FAIL]
        if failing:
            worst = _lowest(tuple(each for _one, each in failing))
            yield worst._replace(
                requirement=worst.requirement._replace(place=place),
                observation=worst.observation._replace(how=how),
                owner=name_owners([one.owner for one, _each in failing]),
            )


def _lowest(findings: tuple[Finding, ...]) -> Finding:
    return min(findings, key=lambda finding: finding.observation.value or 0)


def _matches(process: Process, rule: ProcessRule) -> bool:
    if rule.by == "name":
        return process.comm == rule.value[:15]  # The kernel keeps 15 bytes of a name.
    if rule.by == "unit":
        own = find_home(process.cgroup).user_unit
        return rule.value == own or rule.value in list_units(process.cgroup)
    return process.uid == _find_uid(rule.value)


@lru_cache(maxsize=64)  # Asked for every process.
def _find_uid(name: str) -> int | None:
    user = read_user(name)
    return user.uid if user else None
