# SPDX-License-Identifier: BSD-2-Clause
"""Judge fresh sessions, and what shells make of them, against a policy."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from ..core.cause import Cause, Outlook, Remedy
from ..core.finding import (
    FAIL,
    PASS,
    UNKNOWN,
    Finding,
    Observation,
    Requirement,
    judge,
    judge_limits,
)
from ..core.quote import one_line
from ..core.values import NamedTuple
from ..host.users import find_connecting_user, find_member, is_root
from ..kernel.host_read import KernelRead
from .doubts import doubt_command, doubt_findings
from .doubts_read import find_doubts
from .host_read import SessionsRead
from .measure import SessionResult, measure_sessions, pick_users
from .pam_limits import resolve_limits
from .rules import covers_everyone, find_limits, named_groups, named_users
from .samples_read import MOST_OTHERS, choose_different
from .shell_clock_measure import ShellClock
from .shell_limits_measure import ShellResult, measure_shells
from .sshd_config import list_key_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit
    from ..core.values import Rlimit
    from ..host.look import Look
    from .diagnose import Seen
    from .policy import SessionRule

SHELL = "shell"
"""The item of the finding that a user's shell gives no session."""


class Told(NamedTuple):
    """The limits of a session at one moment, and how they were seen, or the reason why not.

    ``was_asked`` tells whether there was time to ask.
    """

    limits: Mapping[str, Rlimit] | None
    how: str = ""
    reason: str = ""
    was_asked: bool = True


def judge_session(
    place: str,
    wanted: Mapping[str, Limit],
    given: Told,
    shell: Told | None,
    owner: str,
    is_named: bool,
) -> list[Finding]:
    """Return the findings of one session.

    :param given: What PAM, and the start files that are root's, give.
    :param shell: What the user's shell says of itself, if it was asked.
    :param owner: Whose shell it is; empty for root's own.
    :param is_named: Whether the policy asks for this very user, who does not stand for others.
    """
    findings = judge_limits(place, wanted, given.limits, given.how, given.reason)
    if shell is None:
        return findings
    if not shell.was_asked and is_named:
        return [_judge_unseen(one, shell.reason) if one.status == PASS else one for one in findings]
    if shell.limits is None:
        return [*findings, _judge_silence(place, shell.reason, owner, is_named)]
    own = judge_limits(place, wanted, shell.limits, shell.how)
    return [
        mine._replace(owner=owner) if (first.status, mine.status) == (PASS, FAIL) else first
        for first, mine in zip(findings, own)
    ]


def _judge_unseen(finding: Finding, reason: str) -> Finding:
    return judge(finding.requirement, Observation(None, "", reason))


def _judge_silence(place: str, reason: str, owner: str, is_named: bool) -> Finding:
    """Judge a shell that told nothing: who stands for everybody has said nothing of the others."""
    wanted = Requirement(place, SHELL, "value", exact="a shell that starts")
    if not is_named:
        return Finding(UNKNOWN, wanted, Observation(None, "", reason), owner=owner)
    who = one_line(owner or "root")
    remedy = Remedy(f"let {who} find what keeps the own start files from ending")
    cause = Cause("shell-gives-no-session", reason, remedy)
    return Finding(
        FAIL, wanted, Observation("none", "a shell as at a login"), (cause,), owner=owner
    )


_GOOD = Outlook(PASS, "", PASS)
_TURNED_AWAY = "account refused: (?!.*cannot retrieve)"  # Nor is its server away.
_MOST_SAMPLES = 5


def check_sessions(
    rules: tuple[SessionRule, ...],
    users: Sequence[str] | None,
    services: Sequence[str],
    probe: str,
    look: Look,
) -> Iterator[Finding]:
    """Yield the findings of a fresh session of each user through each way in.

    :param users: By default those who stand for all that the rules mean.
    :param probe: ``quiet``, ``full`` or ``predict``; the last opens none.
    """
    named = {*named_users(rules), *(users or ())}
    chosen = _choose_users(rules) if users is None else users
    sample = chosen[-1] if users is None and chosen and covers_everyone(rules) else ""
    wanted = [(service, user) for user in chosen for service in services]
    if not chosen:
        reason = "no login user of this host is one of those that the policy names"
        yield from _unknown_sessions("session:*", rules, reason)
    if probe == "predict":
        for service, user in wanted:
            reason = "no session was opened (probe: predict)"
            yield from _unknown_sessions(f"session:{user}@{service}", rules, reason)
        return
    others: Sequence[str] = ()
    if users is None and chosen:
        others, reasons = _find_others(rules, chosen, look)
        wanted += [(service, user) for service in services[:1] for user in others]
        for reason in reasons:
            yield from _unknown_sessions("session:*", rules, reason)
    read = look.at(SessionsRead)
    results = measure_sessions(wanted, probe, pam_files=read.find_pam_files())
    results = [one for one in results if one.user not in others or not _is_turned_away(one)]
    results += _look_further(results, sample, services, probe)
    seen, unseen = _look(rules, results, named, look)
    yield from unseen
    yield from _explain([(one[0], _doubt(one, probe, look), one[2]) for one in seen], look, rules)


def _explain(seen: Sequence[Seen], look: Look, rules: tuple[SessionRule, ...]) -> Iterator[Finding]:
    """Yield the findings of sessions with what comes next, and with causes where one is short."""
    passed = all(finding.status == PASS for one in seen for finding in one[1])
    passed = passed and not any(_may_differ(one, look) for one in seen)
    if passed and look.at(KernelRead).nr_open_at_boot == look.at(KernelRead).nr_open:
        # The files give the same after a boot, so there is nothing to explain.
        for one in seen:
            yield from (finding._replace(outlook=_GOOD) for finding in one[1])
    else:
        from .diagnose import explain_sessions  # Long, and seldom needed.

        yield from explain_sessions(seen, look, rules)


def _is_turned_away(result: SessionResult) -> bool:
    """Tell whether an account is locked or has ended, so that no limit of it matters."""
    return result.opens is False and re.match(_TURNED_AWAY, result.reason) is not None


def _may_differ(seen: Seen, look: Look) -> bool:
    """Tell whether a session's daemon may pass on something else after a restart."""
    (result, findings, _shell), read = seen, look.at(SessionsRead)
    try:
        user = read.find_user(result.user)
        keeps = read.keeps_what_it_inherits(result.service)
        if user is None or (read.resets_limits(result.service) and not keeps):
            return user is None
        lines = [] if keeps else list(read.lines_of(user))
        nr_open = look.at(KernelRead).nr_open
        bounds = resolve_limits(lines, user, read.dialect, nr_open).bounds
        items = {finding.requirement.item for finding in findings}
        open_ = [one for one in items if not {(one, "soft"), (one, "hard")} <= {*bounds}]
        return any(read.find_change(result.service, item)[0] for item in open_)
    except (OSError, ValueError):
        return True


def _find_others(
    rules: tuple[SessionRule, ...], users: Sequence[str], look: Look
) -> tuple[Sequence[str], list[str]]:
    """Return users to whom limits files state something else, and of whom nothing is found out."""
    try:
        found = choose_different(rules, users, look.at(SessionsRead))
    except (OSError, ValueError) as exc:
        return (), [f"whether limits files treat other users apart is unknown: {exc}"]
    return (*found.short, *found.enough)[:MOST_OTHERS], found.list_untold()


def _look_further(
    results: Sequence[SessionResult], sample: str, services: Sequence[str], probe: str
) -> list[SessionResult]:
    """Return sessions of another user where none opens of the one who stands for everybody.

    A user may see to that, as by many logins where pam_limits has a ``maxlogins``.
    """
    tried = {result.user for result in results}
    if not sample or any(one.limits is not None for one in results if one.user == sample):
        return []
    for user in pick_users(_MOST_SAMPLES):
        more = [] if user in tried else measure_sessions([(way, user) for way in services], probe)
        if any(one.limits is not None for one in more):
            return more
    return []


def _look(
    rules: tuple[SessionRule, ...],
    results: Sequence[SessionResult],
    named: Collection[str],
    look: Look,
) -> tuple[list[Seen], list[Finding]]:
    """Judge sessions; those of users that the host does not have are unknown.

    :param named: Those who are asked for themselves, and do not stand for others.
    """
    read = look.at(SessionsRead)
    shells = measure_shells(
        results, _list_items(rules), _list_keys(results, read), look.at(ShellClock)
    )
    seen: list[Seen] = []
    unseen: list[Finding] = []
    for result in results:
        place = f"session:{result.user}@{result.service}"
        account = read.find_user(result.user)
        if account is None:
            unseen += _unknown_sessions(place, rules, result.reason)
            continue
        shell = shells.get((result.service, result.user))
        wanted, is_named = find_limits(rules, account), result.user in named
        findings = judge_measured(place, wanted, result, shell, is_named)
        if shell and shell.forced and is_named:  # Who stands for others has keys for nobody else.
            findings = doubt_findings(findings, [doubt_command(one) for one in shell.forced])
        seen.append((result, findings, shell))
    return seen, unseen


def _list_keys(results: Sequence[SessionResult], read: SessionsRead) -> dict[str, list[str]]:
    """Return the files with the keys of those who come through sshd, as sshd names them."""
    users = {one.user for one in results if one.service == "sshd" and one.limits is not None}
    found = {name: read.find_user(name) for name in users}
    try:
        path, texts = read.sshd_config if users else ("", {})
        return {name: list_key_files(texts, path, one) for name, one in found.items() if one}
    except (OSError, ValueError):
        return {}  # That it cannot be read is said of each session of sshd.


def _doubt(seen: Seen, probe: str, look: Look) -> Sequence[Finding]:
    """Return the findings of a session; none passes that something else may still change."""
    result, findings, _shell = seen
    user = look.at(SessionsRead).find_user(result.user)
    if user is None or all(finding.status != PASS for finding in findings):
        return findings
    try:
        doubts = find_doubts(result.service, user, look.at(SessionsRead), probe)
    except (OSError, ValueError) as exc:
        return [_judge_unseen(one, str(exc)) if one.status == PASS else one for one in findings]
    return doubt_findings(findings, doubts)


def judge_measured(
    place: str,
    wanted: Mapping[str, Limit],
    result: SessionResult,
    shell: ShellResult | None,
    is_named: bool = False,
) -> list[Finding]:
    """Judge one session, and what the shell then makes of it."""
    given, own = Told(result.limits, result.how, result.reason), None
    if shell:
        first = shell.given
        given = Told(first.limits, first.how, first.reason) if first else given
        own = Told(shell.limits, shell.how, shell.reason, shell.was_asked)
    owner = "" if is_root(result.user) else result.user
    # What it becomes may well be a session, only none that says so when it is asked like this.
    is_clear = shell is None or not shell.was_asked or all(line.bounds for line in shell.lines)
    return judge_session(place, wanted, given, own, owner, is_named and is_clear)


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
