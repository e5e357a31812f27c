# SPDX-License-Identifier: BSD-2-Clause
"""Measure a host against a policy in one run: every place is looked at, and each is judged."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence

from .core.finding import (
    FAIL,
    LATER,
    UNKNOWN,
    Finding,
    Requirement,
    count_statuses,
    find_unlooked,
    judge_unlooked,
)
from .core.quote import one_line, say_error
from .core.reader import PolicyError, join_names
from .core.report import format_report
from .core.values import NamedTuple, Rlimit, format_pair
from .host.image import Tree, is_image, will_boot
from .host.look import Look, read_limits
from .places import PLACES, SECTIONS, look_at_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .core.cause import Cause
    from .core.policy import CheckOptions, Policy
    from .core.waivers import Waiver
    from .sessions.policy import SessionRule

_LONGEST_REASON = 300


class CheckResult(NamedTuple):
    """The findings, and the limits of the process that looked."""

    findings: list[Finding]
    connection: dict[str, str]
    connection_causes: Sequence[Cause] = ()
    idle_waivers: Sequence[Waiver] = ()
    measured: str = ""
    """When, as ``2026-11-30T12:00:00Z``."""
    samples: Sequence[str] = ()
    """Users who stand for everybody that the policy does not name."""
    stated: Mapping[str, object] = {}
    """The policy as plain data."""

    @property
    def lines(self) -> list[str]:
        """The findings for people, at most 80 columns wide."""
        return format_report(self.findings, self.connection_causes, self.idle_waivers)

    def format_brief(self, **told: Any) -> list[str]:
        """Return the findings as a list of things to do.

        :param told: What else the report says, by the names of ``Told``.
        """
        from .core.brief import Told, format_brief

        beside = Told(self.connection_causes, self.idle_waivers, self.samples, **told)
        return format_brief(self.findings, beside)

    def falls_short(self, fail_on: str) -> bool:
        """Tell whether the host falls short of what counts.

        :param fail_on: ``fail``, ``later`` (that, and what will not last), ``unknown`` (both, and
            what could not be seen) or ``never``. A section that could not be looked at always
            counts, but for ``never``.
        """
        unlooked = fail_on != "never" and bool(find_unlooked(self.findings))
        return unlooked or self.has_shortfall(fail_on)

    def has_shortfall(self, fail_on: str) -> bool:
        """Tell whether a finding falls short of what counts; see :meth:`falls_short`."""
        counts = count_statuses(self.findings)
        counting = {"fail": (FAIL,), "later": (FAIL, LATER), "unknown": (FAIL, LATER, UNKNOWN)}
        return any(counts[status] for status in counting.get(fail_on, ()))

    def as_result(self) -> dict[str, object]:
        return {
            "findings": [finding.as_dict() for finding in self.findings],
            "summary": count_statuses(self.findings),
            "report": self.lines,
            "connection": self.connection,
            "connection_causes": [cause.as_dict() for cause in self.connection_causes],
            "measured": self.measured,
            "samples": list(self.samples),
            "idle_waivers": [waiver.describe() for waiver in self.idle_waivers],
        }


def check_host(policy: Policy, options: CheckOptions, look: Look | None = None) -> CheckResult:
    """Return every requirement of the policy, judged by what this host does now.

    :func:`check_within` does the same within a time limit.

    :raises PolicyError: If the policy states nothing for any of the sections: that is never green.
    """
    require_stated(policy, options)
    look = look or look_at_host()
    findings: list[Finding] = []
    if is_unbooted(options):
        findings += look_at_image(policy, options)
    else:
        for name in list_sections(options):
            findings += look_at_section(name, policy, options, look)
    return conclude(policy, options, *finish_findings(policy, options, findings, look))


def require_stated(policy: Policy, options: CheckOptions) -> None:
    """Refuse a policy that states nothing for any of the sections.

    :raises PolicyError: If so.
    """
    stated = list(policy.asked)
    asked = list_sections(options)
    if asked and not any(name in stated for name in asked):
        names = join_names(asked)
        raise PolicyError([f"policy: states nothing for {names}; a policy that does is accepted"])


def list_sections(options: CheckOptions) -> list[str]:
    """Return the sections to look at, in the order in which they are."""
    return [name for name in SECTIONS if options.wants(name)]


def look_at_section(
    name: str, policy: Policy, options: CheckOptions, look: Look
) -> Iterator[Finding]:
    """Yield what was found in one section; that it could not be looked at, if it crashes."""
    place = PLACES[SECTIONS.index(name)]
    try:
        if name in policy.asked:
            yield from place.check(policy.get(name), options, look)
    except PolicyError:
        raise
    except Exception as error:  # One section must not take the others with it.
        if place.is_of_run and isinstance(error, (OSError, ValueError)):
            raise  # What is asked of a run is wrong: that is told, not judged.
        yield _judge_failed(name, error)


def _judge_failed(name: str, error: Exception) -> Finding:
    kind = "" if isinstance(error, (OSError, ValueError)) else f"{type(error).__name__}: "
    return judge_unlooked(name, one_line(f"{kind}{say_error(error)}")[:_LONGEST_REASON])


def look_at_image(policy: Policy, options: CheckOptions) -> Iterator[Finding]:
    """Yield a finding for all that a policy asks of a host to come; none of them passes.

    Of what files do not tell, nothing can be said before somebody runs it.

    :raises OSError: If the tree cannot be read.
    """
    from .core.forecast import Forecast, tell  # A host that runs needs none of it.

    tree, untold = Tree(options.root or "/"), []
    for place in PLACES:
        if not options.wants(place.name) or place.name not in policy.asked:
            continue
        foretold = place.foresee(policy.get(place.name), options, tree)
        if foretold is None:
            untold.append((Requirement(place.name, "all", "value"), Forecast(UNKNOWN)))
        try:
            for wanted, forecast in foretold or ():
                yield tell(wanted, forecast, tree.root, tree.lacks)
        except Exception as error:  # As of a host.
            yield _judge_failed(place.name, error)
    for wanted, forecast in untold:
        yield tell(wanted, forecast, tree.root)


def finish_findings(
    policy: Policy, options: CheckOptions, findings: list[Finding], look: Look
) -> tuple[list[Finding], Sequence[Cause]]:
    """Return the findings with who else writes the files at fault, and why this connection lacks.

    That is not a finding: it is what the process that looks was started with.
    """
    if any(cause.at for finding in findings for cause in finding.causes):
        from .host.rivals import name_writers  # Where nothing falls short, nobody asks.

        findings = name_writers(findings, options.root or "/")
    if any(finding.causes for finding in findings):
        from .host.line_ends import end_lines  # As well.

        findings = end_lines(findings, options.root or "/")
    own = {} if is_unbooted(options) else read_limits("self")
    return findings, _explain_connection(policy, findings, own, look)


def conclude(
    policy: Policy, options: CheckOptions, findings: list[Finding], causes: Sequence[Cause]
) -> CheckResult:
    """Return the result of a look: with its waivers, and the limits of this process."""
    own = {} if is_unbooted(options) else read_limits("self")
    connection = {name: format_pair(name, pair) for name, pair in own.items()}
    findings, idle = _waive(findings, policy.waivers, options)
    measured = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    from .sessions.rules import find_samples  # No other verb needs it.

    samples = find_samples(policy.get("sessions"), [one.requirement.place for one in findings])
    return CheckResult(findings, connection, causes, idle, measured, samples, policy.stated)


def is_unbooted(options: CheckOptions) -> bool:
    """Tell whether what is looked at does not run: a tree, or an image that is being built."""
    return bool(options.root) or (is_image() and will_boot())


def _waive(
    findings: list[Finding], waivers: tuple[Waiver, ...], options: CheckOptions
) -> tuple[list[Finding], list[Waiver]]:
    """Return the findings with what the policy lets pass, and the waivers that nothing needs."""
    if not waivers:
        return findings, []
    from .core.waivers import find_idle, waive

    host = os.uname().nodename
    whole = all(map(options.wants, SECTIONS))
    idle = list(find_idle(findings, waivers, host)) if whole else []
    return waive(findings, waivers, host, time.strftime("%Y-%m-%d")), idle


def _explain_connection(
    policy: Policy, findings: list[Finding], own: Mapping[str, Rlimit], look: Look
) -> Sequence[Cause]:
    """Return why this connection has less than a fresh session; that is not a finding."""
    sessions: tuple[SessionRule, ...] = policy.get("sessions") or ()
    rules = [limit for rule in sessions for limit in rule.limits.items()]
    if not any(
        limit.soft is not None and own[item].soft < limit.soft
        for item, limit in rules
        if item in own
    ):
        return ()
    from .sessions.connection_diagnose import explain_connection  # Seldom needed.

    return explain_connection(sessions, findings, own, look)
