# SPDX-License-Identifier: BSD-2-Clause
"""Say why processes fall short, by the service or the login session that they live in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.cause import Outlook
from ..core.cgroup import find_home
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement, judge
from ..core.values import Rlimit
from ..systemd.read import Seen, World
from .causes import Verdict
from .logins_read import find_job, find_login, judge_login
from .read import find_ancestors
from .units_diagnose import judge_unit, judge_user_unit


def explain_process(seen: Seen, world: World) -> list[Finding]:
    """Return the findings of a process with their causes, and with what comes next."""
    try:
        told, as_session = _judge(seen, world)
    except (OSError, ValueError):
        told, as_session = {}, False  # It ended meanwhile, or its surroundings cannot be read.
    given = {} if seen.is_named_by_user else told
    return [
        own(tell(finding, told, as_session), seen.owner, given.get(finding.requirement.item))
        for finding in seen.findings
    ]


def own(finding: Finding, owner: str, verdict: Verdict | None) -> Finding:
    """Return a finding with whose doing it is: a user's, unless root gives too little already.

    Nobody but root raises a hard limit, so one that is too high is root's.
    """
    wanted, value = finding.requirement, finding.observation.value
    if finding.status != FAIL or not isinstance(value, int):
        return finding
    too_high = wanted.maximum is not None and value > wanted.maximum
    given = verdict.given if verdict else None
    if too_high or (given is not None and _foretell(wanted, given) == FAIL):
        return finding
    return finding._replace(owner=owner)


def _judge(seen: Seen, world: World) -> tuple[dict[str, Verdict], bool]:
    """Return what is to be said of each limit, and whether a next session decides it."""
    home = find_home(seen.process.cgroup)
    unit = seen.unit or home.unit
    if any(finding.status == FAIL for finding in seen.findings):
        ancestors = find_ancestors(seen.process.pid)
        way = find_job(seen.process, ancestors, unit)
        if way is None and home.session and not unit:
            way = find_login(seen.process, ancestors, home.session)
        if way:
            return judge_login(seen, way, ancestors, world), True
    if home.user_unit and home.uid is not None:
        return judge_user_unit(seen, home.user_unit, home.uid, world), False
    return judge_unit(seen, unit, world) if unit else {}, False


def explain_representative(
    shown: Sequence[Finding], members: Sequence[Seen], world: World
) -> list[Finding]:
    """Return findings that stand for processes which all pass, with what will not last of any.

    :param members: The processes; of those that share a home, one is looked at.
    """
    homes = {find_home(seen.process.cgroup): seen for seen in reversed(members)}
    explained = [explain_process(seen, world) for seen in homes.values()]
    return [
        _merge(finding, [one for each in explained for one in each if _is_same(finding, one)])
        for finding in shown
    ]


def _is_same(finding: Finding, other: Finding) -> bool:
    a, b = finding.requirement, other.requirement
    return (a.item, a.bound) == (b.item, b.bound)


def _merge(finding: Finding, others: Sequence[Finding]) -> Finding:
    """Return a finding with the worst outlook of others, and all their causes."""
    causes = tuple(dict.fromkeys(cause for other in others for cause in other.causes))
    outlook = Outlook(*(_find_worst(column) for column in zip(*(one.outlook for one in others))))
    return finding._replace(causes=causes, outlook=outlook)


def _find_worst(statuses: Sequence[str]) -> str:
    return next((status for status in (FAIL, UNKNOWN, PASS) if status in statuses), "")


def tell(
    finding: Finding, told: Mapping[str, Verdict], as_session: bool = False, unseen: bool = False
) -> Finding:
    """Return a finding with what was found out about its limit.

    :param unseen: Whether what was not seen is foretold as well.
    """
    verdict, wanted = told.get(finding.requirement.item), finding.requirement
    if verdict is None or (finding.status == UNKNOWN and not unseen):
        return finding
    soon, boot = (_foretell(wanted, pair) for pair in (verdict.next_start, verdict.at_boot))
    outlook = Outlook(soon, "", boot) if as_session else Outlook("", soon, boot)
    causes = verdict.causes if FAIL in (finding.status, soon, boot) else ()
    causes += tuple(one for one in verdict.doubts if one not in causes)
    return finding._replace(causes=causes, outlook=outlook)


def _foretell(wanted: Requirement, pair: Rlimit | None) -> str:
    if pair is None:
        return UNKNOWN
    return judge(wanted, Observation(wanted.pick(pair), "")).status
