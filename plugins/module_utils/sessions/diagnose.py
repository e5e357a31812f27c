# SPDX-License-Identifier: BSD-2-Clause
"""Say why sessions fall short, and whether the next ones and those after a boot will."""

from __future__ import annotations

import pwd
from collections.abc import Iterator, Sequence
from typing import Optional

from ..core.cause import Cause, Link, Outlook, cite
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, judge, observe_limit
from ..core.values import ITEMS, NamedTuple, Rlimit, format_pair, format_quantity
from ..host.look import Look, format_time, may_raise_limits, read_process, read_start_time
from ..host.users import read_user
from ..kernel.host_read import KernelRead, find_nr_open_at_boot, find_nr_open_line
from .base_read import is_installed
from .causes import find_session_causes
from .doubts import doubt_daemon
from .facts import SessionFacts, find_ending, predict_session
from .host_read import SessionsRead
from .measure import SessionResult, measure_sessions
from .model import Start, find_baseline
from .reach import Hindrance, ends_with_limits, find_bypass, find_earlier, find_hindrances
from .rivals import keep_rivals
from .rules import find_domain, find_limits
from .shell_causes import find_shell_causes
from .shell_clock_measure import ShellClock
from .shell_limits_measure import ShellResult, measure_shells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import SessionRule

    Seen = tuple[SessionResult, Sequence[Finding], Optional[ShellResult]]


class Foretold(NamedTuple):
    """What decides a session, and the limits that follow from it."""

    facts: SessionFacts
    limits: dict[str, Rlimit]


def explain_sessions(
    seen: Sequence[Seen], look: Look, rules: Sequence[SessionRule] = ()
) -> Iterator[Finding]:
    """Yield the findings with their causes, and with what comes next.

    :param rules: The policy's; remedies state a limit for whom these ask it.
    :param seen: Each session that was opened, its findings, and what its shell did if it was asked.
    """
    for result, findings, shell in seen:
        facts = gather_session(result, look)
        if facts is None:
            yield from findings
            continue
        start = facts.start._replace(nr_open=look.at(KernelRead).nr_open_at_boot)
        now, booted = (_foretell(facts), _foretell(facts._replace(start=start)))
        for finding in findings:
            item = finding.requirement.item
            known = item in facts.start.inherited
            first, then = (_ask(one, rules, item) for one in (now, booted))
            if finding.status == UNKNOWN:
                explained = _explain_closed(finding, facts, result)
            else:
                explained = _explain(finding, first, then, (result, shell)) if known else finding
            explained = _doubt_restart(explained, facts, result, look)
            yield _for_jobs(explained) if result.service.startswith("cron") else explained


def _doubt_restart(
    finding: Finding, facts: SessionFacts, result: SessionResult, look: Look
) -> Finding:
    """Say that a boot is not known to give what the daemon passes on now, if nothing states it."""
    item, bounds = finding.requirement.item, facts.resolution.bounds
    stated = not facts.hindrances and all((item, kind) in bounds for kind in ("soft", "hard"))
    keeps = bool(facts.hindrances) and facts.hindrances[0].lines is None
    if finding.outlook.after_boot != PASS or (facts.start.resets and not keeps) or stated:
        return finding
    reason, path = look.at(SessionsRead).find_change(result.service, item)
    if not reason:
        return finding
    cause = doubt_daemon(reason, path)
    outlook = finding.outlook._replace(after_boot=UNKNOWN)
    return finding._replace(causes=(*finding.causes, cause), outlook=outlook)


def _ask(foretold: Foretold, rules: Sequence[SessionRule], item: str) -> Foretold:
    """Return what is foretold with what the policy asks of a limit, and for whom."""
    user = foretold.facts.user
    domain, asked = find_domain(rules, user, item), find_limits(rules, user).get(item)
    return foretold._replace(facts=foretold.facts._replace(domain=domain, asked=asked))


def _explain_closed(finding: Finding, facts: SessionFacts, result: SessionResult) -> Finding:
    """Name what keeps a session from being opened, where that is what keeps PAM from its files."""
    if result.limits is not None or not is_installed(result.service):
        return finding
    if facts.hindrances:
        return finding._replace(causes=(facts.hindrances[0].cause,))
    if result.opens is not False or not find_ending(facts):
        return finding
    causes = tuple(find_session_causes(finding.requirement, facts))
    if not causes:
        return finding
    seen = Observation("no session", result.how)
    return finding._replace(status=FAIL, observation=seen, causes=causes)


def _foretell(facts: SessionFacts) -> Foretold:
    return Foretold(facts, predict_session(facts))


def _explain(
    finding: Finding,
    now: Foretold,
    booted: Foretold,
    seen: tuple[SessionResult, ShellResult | None],
) -> Finding:
    result, shell = seen
    wanted, observed = finding.requirement, finding.observation.value
    foretold = observe_limit(wanted, now.limits, "", "").value
    if foretold != observe_limit(wanted, result.limits, "", "").value:
        return finding._replace(outlook=Outlook(finding.status, "", UNKNOWN))
    at_boot = judge(wanted, observe_limit(wanted, booted.limits, "", "")).status
    at_boot = FAIL if find_ending(booted.facts) else at_boot
    causes: list[Cause] = []
    if finding.status == FAIL and observed != foretold and shell:
        lines = shell.lines if finding.owner or shell.given is None else shell.given.lines
        home = find_home(result.user)
        causes += find_shell_causes(wanted, observed, lines, result.user, home)
        at_boot = FAIL
    if FAIL in (finding.status, at_boot):
        facts = now.facts if finding.status == FAIL else booted.facts
        causes += find_session_causes(wanted, facts)
    return finding._replace(causes=tuple(causes), outlook=Outlook(finding.status, "", at_boot))


def find_home(user: str) -> str:
    """Return a user's home; nothing for one that the host does not know."""
    try:
        return pwd.getpwnam(user).pw_dir
    except KeyError:
        return ""


def _for_jobs(finding: Finding) -> Finding:
    """Say of a job of cron what comes after a remedy: nobody logs in again."""
    causes = tuple(
        cause._replace(remedy=cause.remedy._replace(then="the next job has it"))
        for cause in finding.causes
    )
    return finding._replace(causes=causes)


def gather_session(result: SessionResult, look: Look) -> SessionFacts | None:
    """Return all that decides one session, or nothing where that is not known."""
    user = read_user(result.user)
    if user is None or result.base is None:
        return None
    try:
        found = list(_find_hindrances(result.service, look))
    except ValueError:
        return None
    read, kernel = look.at(SessionsRead), look.at(KernelRead)
    hindrances = tuple(
        one._replace(lines=one.lines and keep_rivals(one.lines, user, read.dialect))
        for one in found
    )
    resets, may_raise = read.resets_limits(result.service), may_raise_limits()
    start = Start(result.base, kernel.limits_of_pid_1, kernel.nr_open, resets, may_raise)
    lines, unread = read.lines_of(user), read.unread_lines
    at_boot = find_nr_open_at_boot(look)
    facts = SessionFacts(user, read.dialect, lines, start, hindrances, unread, at_boot)
    confs = read.read_confs(result.service)
    facts = facts._replace(
        reset=result.reset,
        is_fatal=ends_with_limits(result.service, read.pam_files),
        earlier=find_earlier(result.service, read.pam_files, confs, read.dialect),
        nr_open_line=find_nr_open_line(look),
    )
    return _admit(facts) if result.opens else facts


def _admit(facts: SessionFacts) -> SessionFacts:
    """Return facts that do not end a session that was seen to open."""
    hindrances = tuple(one._replace(ends=False) for one in facts.hindrances)
    facts = facts._replace(hindrances=hindrances)
    return facts._replace(is_fatal=False) if find_ending(facts) else facts


def _find_hindrances(service: str, look: Look) -> Iterator[Hindrance]:
    read = look.at(SessionsRead)
    bypass = find_bypass(read.use_pam, read.sshd_unit) if service == "sshd" else None
    yield from filter(None, [bypass])
    missing, confs = read.find_missing_modules(service), read.read_confs(service)
    yield from find_hindrances(service, read.pam_files, missing, confs, read.dialect)


def trace_session(user: str, service: str, item: str, look: Look) -> Iterator[Link]:
    """Yield the chain from the kernel to a fresh session of a user, link by link.

    :raises ValueError: If there is no such user, or the session cannot be understood.
    """
    (result,) = measure_sessions([(service, user)])
    facts = gather_session(result, look)
    if facts is None:
        raise ValueError(result.reason or f"no session of {user} through {service} is known")
    yield from _trace_start(item, facts, result.how)
    yield from _trace_lines(item, facts, look)
    if facts.reset and item in facts.reset.soft:
        soft = format_quantity(facts.reset.soft[item], ITEMS[item].unit)
        yield Link("SELinux", soft, f"soft, the kernel's own: {facts.reset.source} passes none on")
    predicted = format_pair(item, predict_session(facts)[item])
    ending = find_ending(facts)
    what = f"the kernel refuses {ending}, and PAM then the login" if ending else ""
    yield Link("predicted", "" if ending else predicted, what or "what follows from these")
    if result.limits is None or item not in result.limits:
        yield Link("session", "unknown", result.reason or f"{item} is set after PAM")
        return
    yield Link("session", format_pair(item, result.limits[item]), "measured in a fresh one")
    shell = measure_shells([result], [item], clock=look.at(ShellClock)).get((service, user))
    for line in shell.lines if shell else ():
        since = look.find_change(line.at.path)
        yield Link("startup file", str(line.at.value), cite(line.at), since)
    if shell and shell.limits:
        yield Link("shell", format_pair(item, shell.limits[item]), shell.how)
    if item == "nproc":
        yield from _trace_tasks(facts.user.uid)


def _trace_tasks(uid: int) -> Iterator[Link]:
    """Yield how many tasks a user has now, which nproc bounds for all but root."""
    from ..kernel.use_now_read import count_tasks

    use = count_tasks(uid)
    if use and uid != 0:
        yield Link("in use", str(use.used), f"tasks of {use.who}")


def _trace_start(item: str, facts: SessionFacts, how: str) -> Iterator[Link]:
    """Yield what a session has before pam_limits reads a line."""
    start = facts.start
    if item == "nofile":
        yield Link("kernel", str(start.nr_open), "fs.nr_open, above which no limit goes")
    since = format_time(read_start_time(read_process(1)))
    yield Link("process 1", format_pair(item, start.of_pid_1[item]), "/proc/1/limits", since)
    yield Link("inherited", format_pair(item, start.inherited[item]), how)
    if not start.may_raise:
        yield Link("capability", "", "CAP_SYS_RESOURCE is missing: no hard limit can be raised")
    for hindrance in facts.hindrances:
        yield Link("PAM", "", hindrance.cause.text)
    if start.resets and not facts.hindrances:
        base = format_pair(item, find_baseline(item, start))
        yield Link("baseline", base, "pam_limits starts over from process 1")


def _trace_lines(item: str, facts: SessionFacts, look: Look) -> Iterator[Link]:
    """Yield the lines that compete, and the one that counts, bound by bound."""
    for kind in ("soft", "hard"):
        bound = facts.resolution.bounds.get((item, kind))
        if bound is None:
            continue
        for line in (*bound.shadowed, bound.winner):
            value = format_quantity(int(line.value), ITEMS[item].unit)
            counts = "counts" if line == bound.winner else "is beaten"
            yield Link(f"{kind} {counts}", value, cite(line), look.find_change(line.path))
