# SPDX-License-Identifier: BSD-2-Clause
"""Measure a host against a policy in one run: every place is looked at, and each is judged."""

from __future__ import annotations

from typing import NamedTuple

from .explain_kernel import explain_kernel
from .explain_sessions import Seen, explain_sessions
from .policy.finding import (
    FAIL,
    LATER,
    UNKNOWN,
    Finding,
    Observation,
    Requirement,
    count_statuses,
    judge,
    judge_limits,
    require_kernel,
)
from .policy.report import format_failures, format_report, format_verdict
from .policy.rlimit import ITEMS, format_quantity
from .policy.session_rules import covers_everyone, find_limits, named_groups, named_users
from .policy.sysctl_conf import parse_sysctl_number
from .probe.evidence import Evidence
from .probe.kernel import read_sysctl
from .probe.process import read_limits
from .probe.session import measure_sessions, pick_users
from .probe.shell_limits import measure_shells
from .probe.users import find_connecting_user, find_member, read_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .policy.schema import Policy, SessionRule

SECTIONS = ("kernel", "sessions", "containers", "processes")
SERVICES = ("sshd", "su", "sudo", "cron", "login")


class Options(NamedTuple):
    """How a host is looked at."""

    sections: tuple[str, ...] = SECTIONS
    users: tuple[str, ...] | None = None
    services: tuple[str, ...] = SERVICES
    probe: str = "quiet"
    canary: str = "auto"


class CheckResult(NamedTuple):
    """The findings, and the limits of the process that looked."""

    findings: list[Finding]
    connection: dict[str, str]

    @property
    def message(self) -> str:
        """How many findings of each status, then a line for each place that falls short."""
        return "\n".join([format_verdict(self.findings), *format_failures(self.findings)])

    @property
    def lines(self) -> list[str]:
        """The findings for people, at most 80 columns wide."""
        return format_report(self.findings)

    def falls_short(self, fail_on: str) -> bool:
        """Tell whether the host falls short of what counts.

        :param fail_on: ``fail``, ``later`` (that, and what will not last), ``unknown`` (both, and
            what could not be seen) or ``never``.
        """
        counts = count_statuses(self.findings)
        counting = {"fail": (FAIL,), "later": (FAIL, LATER), "unknown": (FAIL, LATER, UNKNOWN)}
        return any(counts[status] for status in counting.get(fail_on, ()))

    def as_result(self) -> dict[str, object]:
        return {
            "findings": [finding.as_dict() for finding in self.findings],
            "summary": count_statuses(self.findings),
            "report": self.lines,
            "connection": self.connection,
        }


def check_host(policy: Policy, options: Options) -> CheckResult:
    """Return every requirement of the policy, judged by what this host does now."""
    findings: list[Finding] = []
    evidence = Evidence()
    for name, look in _LOOKS.items():
        if name in options.sections:
            findings += look(policy, options, evidence)
    own = read_limits("self")
    connection = {
        name: ":".join(format_quantity(value, ITEMS[name].unit) for value in pair)
        for name, pair in own.items()
    }
    return CheckResult(findings, connection)


def _check_kernel(policy: Policy, _options: Options, evidence: Evidence) -> Iterator[Finding]:
    yield from explain_kernel(list(_judge_kernel(policy)), evidence)


def _judge_kernel(policy: Policy) -> Iterator[Finding]:
    for key, value in policy.kernel.items():
        how = "/proc/sys"
        try:
            text = read_sysctl(key)
            reason = "" if text is not None else "this kernel has no such sysctl"
        except OSError as exc:
            text, reason = None, f"cannot be read: {exc.strerror}"
        seen: int | str | None = text
        if text is not None and value.exact is None:
            number = parse_sysctl_number(text)
            seen = text if number is None else number
        yield judge(require_kernel(key, value), Observation(seen, how, reason))


def _check_sessions(policy: Policy, options: Options, evidence: Evidence) -> Iterator[Finding]:
    rules = policy.sessions
    users = list(options.users) if options.users is not None else _choose_users(rules)
    wanted = [(service, user) for user in users for service in options.services] if rules else []
    if rules and not users:
        reason = "no user of this host can stand for those that the policy means"
        yield from _unknown_sessions("session:*", rules, reason)
    if options.probe == "predict":
        for service, user in wanted:
            reason = "no session was opened (probe: predict)"
            yield from _unknown_sessions(f"session:{user}@{service}", rules, reason)
        return
    results = measure_sessions(wanted, options.probe)
    shells = measure_shells(results, _list_items(rules))
    seen = []
    for result in results:
        place = f"session:{result.user}@{result.service}"
        account = read_user(result.user)
        if account is None:
            yield from _unknown_sessions(place, rules, result.reason)
            continue
        shell = shells.get((result.service, result.user))
        limits, how = (result.limits, result.how) if shell is None else (shell.limits, shell.how)
        reason = shell.reason if shell else result.reason
        findings = judge_limits(place, find_limits(rules, account), limits, how, reason)
        seen.append(Seen(result, findings, shell))
    yield from explain_sessions(seen, evidence)


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


def _check_containers(policy: Policy, options: Options, _evidence: Evidence) -> Iterator[Finding]:
    if policy.docker:
        from .check_docker import check_docker

        yield from check_docker(policy.docker, options.canary)


def _check_processes(policy: Policy, _options: Options, _evidence: Evidence) -> Iterator[Finding]:
    if policy.processes:
        from .check_processes import check_processes

        yield from check_processes(policy.processes)


_LOOKS = {
    "kernel": _check_kernel,
    "sessions": _check_sessions,
    "containers": _check_containers,
    "processes": _check_processes,
}
