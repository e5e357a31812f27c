# SPDX-License-Identifier: BSD-2-Clause
"""Judge fresh sessions, and what shells make of them, against a policy."""

from __future__ import annotations

from .policy.cause import Outlook
from .policy.finding import PASS, Finding, Observation, Requirement, judge, judge_limits
from .policy.session_rules import covers_everyone, find_limits, named_groups, named_users
from .probe.session import measure_sessions, pick_users
from .probe.shell_limits import measure_shells
from .probe.users import find_connecting_user, find_member, read_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .explain_sessions import Seen
    from .policy.schema import SessionRule
    from .probe.evidence import Evidence
    from .probe.session import SessionResult

_GOOD = Outlook(PASS, "", PASS)


def check_sessions(
    rules: tuple[SessionRule, ...],
    users: Sequence[str] | None,
    services: Sequence[str],
    probe: str,
    evidence: Evidence,
) -> Iterator[Finding]:
    """Yield the findings of a fresh session of each user through each way in.

    :param users: By default those who stand for all that the rules mean.
    :param probe: ``quiet``, ``full`` or ``predict``; the last opens none.
    """
    users = _choose_users(rules) if users is None else users
    wanted = [(service, user) for user in users for service in services]
    if not users:
        reason = "no user of this host can stand for those that the policy means"
        yield from _unknown_sessions("session:*", rules, reason)
    if probe == "predict":
        for service, user in wanted:
            reason = "no session was opened (probe: predict)"
            yield from _unknown_sessions(f"session:{user}@{service}", rules, reason)
        return
    seen, unseen = _look(rules, measure_sessions(wanted, probe))
    yield from unseen
    passed = all(finding.status == PASS for one in seen for finding in one[1])
    if passed and evidence.nr_open_at_boot == evidence.nr_open:
        # The files give the same after a boot, so there is nothing to explain.
        for one in seen:
            yield from (finding._replace(outlook=_GOOD) for finding in one[1])
    else:
        from .explain_sessions import explain_sessions  # Long, and seldom needed.

        yield from explain_sessions(seen, evidence)


def _look(
    rules: tuple[SessionRule, ...], results: Sequence[SessionResult]
) -> tuple[list[Seen], list[Finding]]:
    """Judge sessions; those of users that the host does not have are unknown."""
    shells = measure_shells(results, _list_items(rules))
    seen: list[Seen] = []
    unseen: list[Finding] = []
    for result in results:
        place = f"session:{result.user}@{result.service}"
        account = read_user(result.user)
        if account is None:
            unseen += _unknown_sessions(place, rules, result.reason)
            continue
        shell = shells.get((result.service, result.user))
        limits, how = (result.limits, result.how) if shell is None else (shell.limits, shell.how)
        reason = shell.reason if shell else result.reason
        findings = judge_limits(place, find_limits(rules, account), limits, how, reason)
        seen.append((result, findings, shell))
    return seen, unseen


def _unknown_sessions(place: str, rules: tuple[SessionRule, ...], reason: str) -> Iterator[Finding]:
    for item in _list_items(rules):
        yield judge(Requirement(place, item, "soft"), Observation(None, "", reason))


def _list_items(rules: tuple[SessionRule, ...]) -> list[str]:
    return list(dict.fromkeys(item for rule in rules for item in rule.limits))


def _choose_users(rules: tuple[SessionRule, ...]) -> list[str]:
    """Return users that stand for all that the rules mean."""
    chosen = named_users(rules)
    chosen += [member for member in map(find_member, named_groups(rules)) if member]
    if covers_everyone(rules):
        connecting = find_connecting_user()
        chosen += [connecting] if connecting else pick_users(1)
    return list(dict.fromkeys(chosen))
