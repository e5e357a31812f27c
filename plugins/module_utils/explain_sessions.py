# SPDX-License-Identifier: BSD-2-Clause
"""Say why sessions fall short, and whether the next ones and those after a boot will."""

from __future__ import annotations

from typing import NamedTuple

from .policy.cause import Outlook
from .policy.finding import FAIL, UNKNOWN, Finding, judge, observe_limit
from .policy.pam_reach import Hindrance, find_bypass, find_hindrances
from .policy.session_causes import SessionFacts, find_session_causes, predict_session
from .policy.session_model import Start
from .probe.users import read_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .probe.evidence import Evidence
    from .probe.session import SessionResult


class Seen(NamedTuple):
    """A session that was opened, and what a policy demands of it, judged."""

    result: SessionResult
    findings: Sequence[Finding]


def explain_sessions(seen: Sequence[Seen], evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings with their causes, and with what comes next."""
    for result, findings in seen:
        facts = _gather(result, evidence)
        for finding in findings:
            yield finding if facts is None else _explain(finding, facts, evidence)


def _explain(finding: Finding, facts: SessionFacts, evidence: Evidence) -> Finding:
    wanted = finding.requirement
    if finding.status == UNKNOWN or wanted.item not in facts.start.inherited:
        return finding
    foretold = observe_limit(wanted, predict_session(facts), "", "")
    if foretold.value != finding.observation.value:
        return finding._replace(outlook=Outlook(finding.status, "", UNKNOWN))
    booted = facts._replace(start=facts.start._replace(nr_open=evidence.nr_open_at_boot))
    later = judge(wanted, observe_limit(wanted, predict_session(booted), "", "")).status
    worse = facts if finding.status == FAIL else booted
    causes = find_session_causes(wanted, worse) if FAIL in (finding.status, later) else []
    outlook = Outlook(finding.status, "", later)
    return finding._replace(causes=tuple(causes), outlook=outlook)


def _gather(result: SessionResult, evidence: Evidence) -> SessionFacts | None:
    """Return all that decides one session, or nothing where that is not known."""
    user = read_user(result.user)
    if user is None or result.base is None:
        return None
    try:
        hindrances = tuple(_find_hindrances(result.service, evidence))
    except ValueError:
        return None
    start = Start(
        result.base,
        evidence.limits_of_pid_1,
        evidence.nr_open,
        evidence.resets_limits(result.service),
    )
    unread = evidence.unread_lines
    lines = evidence.limits_lines
    return SessionFacts(user, evidence.dialect, lines, start, hindrances, unread)


def _find_hindrances(service: str, evidence: Evidence) -> Iterator[Hindrance]:
    bypass = find_bypass(evidence.use_pam, evidence.sshd_unit) if service == "sshd" else None
    if bypass:
        yield bypass
    yield from find_hindrances(
        service,
        evidence.pam_files,
        evidence.find_missing_modules(service),
        evidence.read_confs(service),
        evidence.dialect,
    )
