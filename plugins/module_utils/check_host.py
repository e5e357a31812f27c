# SPDX-License-Identifier: BSD-2-Clause
"""Measure a host against a policy in one run: every place is looked at, and each is judged."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from .check_options import SECTIONS, Options
from .explain_kernel import explain_kernel
from .policy.finding import (
    FAIL,
    LATER,
    UNKNOWN,
    Finding,
    Observation,
    count_statuses,
    find_unlooked,
    judge,
    judge_unlooked,
    require_kernel,
)
from .policy.policy_reader import PolicyError, join_names
from .policy.quote import one_line
from .policy.report import format_failures, format_report, format_verdict, note_workers
from .policy.rlimit import ITEMS, format_quantity
from .policy.sysctl_conf import parse_sysctl_number
from .probe.evidence import Evidence
from .probe.image import is_image, will_boot
from .probe.kernel import read_sysctl
from .probe.process import read_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .policy.cause import Cause
    from .policy.rlimit import Rlimit
    from .policy.schema import Policy
    from .policy.waivers_policy import Waiver

_SHARE_OF_A_USER = 0.3  # Of the time limit: the most that one user's container may take of it.
_LONGEST_REASON = 300
_RUN = "training"


class CheckResult(NamedTuple):
    """The findings, and the limits of the process that looked."""

    findings: list[Finding]
    connection: dict[str, str]
    connection_causes: Sequence[Cause] = ()
    idle_waivers: Sequence[Waiver] = ()
    measured: str = ""
    """When, as ``2026-11-30T12:00:00Z``."""

    @property
    def message(self) -> str:
        """How many findings of each status, what falls short, and how many workers fit."""
        told = (format_failures(self.findings), note_workers(self.findings))
        return "\n".join([format_verdict(self.findings), *(line for part in told for line in part)])

    @property
    def lines(self) -> list[str]:
        """The findings for people, at most 80 columns wide."""
        return format_report(self.findings, self.connection_causes, self.idle_waivers)

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
            "idle_waivers": [waiver.describe() for waiver in self.idle_waivers],
        }


def check_host(policy: Policy, options: Options, evidence: Evidence | None = None) -> CheckResult:
    """Return every requirement of the policy, judged by what this host does now.

    :func:`check_within` does the same within a time limit.

    :raises PolicyError: If the policy states nothing for any of the sections: that is never green.
    """
    require_stated(policy, options)
    evidence = evidence or Evidence()
    findings: list[Finding] = []
    if is_unbooted(options):
        findings += look_at_image(policy, options)
    else:
        for name in list_sections(options):
            findings += look_at_section(name, policy, options, evidence)
    return conclude(policy, options, *finish_findings(policy, options, findings, evidence))


def require_stated(policy: Policy, options: Options) -> None:
    """Refuse a policy that states nothing for any of the sections.

    :raises PolicyError: If so.
    """
    if options.sections and not any(_is_stated(policy, name) for name in options.sections):
        names = join_names(options.sections)
        raise PolicyError([f"policy: states nothing for {names}, so nothing would be checked"])


def list_sections(options: Options) -> list[str]:
    """Return the sections to look at, in the order in which they are."""
    return [name for name in _LOOKS if name in options.sections]


def look_at_section(
    name: str, policy: Policy, options: Options, evidence: Evidence
) -> Iterator[Finding]:
    """Yield what was found in one section; that it could not be looked at, if it crashes."""
    try:
        yield from _LOOKS[name](policy, options, evidence)
    except PolicyError:
        raise
    except Exception as error:  # One section must not take the others with it.
        if name == _RUN and isinstance(error, (OSError, ValueError)):
            raise  # What is asked of a run is wrong: that is told, not judged.
        kind = "" if isinstance(error, (OSError, ValueError)) else f"{type(error).__name__}: "
        yield judge_unlooked(name, one_line(f"{kind}{error}")[:_LONGEST_REASON])


def look_at_image(policy: Policy, options: Options) -> Iterator[Finding]:
    """Yield what the files of an image foretell."""
    from .check_image import check_image  # A host that runs needs none of it.

    yield from check_image(policy, options, options.root or "/")


def finish_findings(
    policy: Policy, options: Options, findings: list[Finding], evidence: Evidence
) -> tuple[list[Finding], Sequence[Cause]]:
    """Return the findings with who else writes the files at fault, and why this connection lacks.

    That is no finding: it is what the process that looks was started with.
    """
    if any(cause.at for finding in findings for cause in finding.causes):
        from .writers import name_writers  # Where nothing falls short, nobody asks.

        findings = name_writers(findings, options.root or "/")
    own = {} if is_unbooted(options) else read_limits("self")
    return findings, _explain_connection(policy, findings, own, evidence)


def conclude(
    policy: Policy, options: Options, findings: list[Finding], causes: Sequence[Cause]
) -> CheckResult:
    """Return the result of a look: with its waivers, and the limits of this process."""
    own = {} if is_unbooted(options) else read_limits("self")
    connection = {
        name: ":".join(format_quantity(value, ITEMS[name].unit) for value in pair)
        for name, pair in own.items()
    }
    findings, idle = _waive(findings, policy.waivers, options)
    measured = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return CheckResult(findings, connection, causes, idle, measured)


def is_unbooted(options: Options) -> bool:
    """Tell whether what is looked at does not run: a tree, or an image that is being built."""
    return bool(options.root) or (is_image() and will_boot())


def _waive(
    findings: list[Finding], waivers: tuple[Waiver, ...], options: Options
) -> tuple[list[Finding], list[Waiver]]:
    """Return the findings with what the policy lets pass, and the waivers that nothing needs."""
    if not waivers:
        return findings, []
    from .policy.waivers import find_idle, waive

    host = os.uname().nodename
    whole = set(options.sections) == set(SECTIONS)
    idle = list(find_idle(findings, waivers, host)) if whole else []
    return waive(findings, waivers, host, time.strftime("%Y-%m-%d")), idle


def _is_stated(policy: Policy, section: str) -> bool:
    return getattr(policy, "slurm" if section == "slurm_steps" else section) not in (None, (), {})


def _explain_connection(
    policy: Policy, findings: list[Finding], own: Mapping[str, Rlimit], evidence: Evidence
) -> Sequence[Cause]:
    """Return why this connection has less than a fresh session; that is no finding."""
    rules = [limit for rule in policy.sessions for limit in rule.limits.items()]
    if not any(
        limit.soft is not None and own[item].soft < limit.soft
        for item, limit in rules
        if item in own
    ):
        return ()
    from .explain_connection import explain_connection  # Seldom needed.

    return explain_connection(policy.sessions, findings, own, evidence)


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
    if policy.sessions:
        from .check_sessions import check_sessions

        yield from check_sessions(
            policy.sessions, options.users, options.services, options.probe, evidence
        )


def _check_docker(policy: Policy, options: Options, evidence: Evidence) -> Iterator[Finding]:
    if policy.docker:
        from .check_docker import check_docker

        yield from check_docker(policy.docker, options.canary, evidence)
        if evidence.docker.rootless:
            from .check_rootless import check_rootless  # On few hosts.

            yield from check_rootless(policy.docker, options.canary, evidence)


def _check_services(policy: Policy, options: Options, evidence: Evidence) -> Iterator[Finding]:
    if policy.services:
        from .check_services import check_services

        yield from check_services(policy.services, options.canary, evidence, options.probe)


def _check_podman(policy: Policy, options: Options, evidence: Evidence) -> Iterator[Finding]:
    if policy.podman:
        from .check_podman import check_podman

        seconds = options.time_limit * _SHARE_OF_A_USER
        yield from check_podman(policy.podman, options.canary, evidence, seconds)


def _check_containerd(policy: Policy, options: Options, evidence: Evidence) -> Iterator[Finding]:
    if policy.containerd:
        from .check_containerd import check_containerd

        yield from check_containerd(policy.containerd, options.canary, evidence)


def _check_processes(policy: Policy, options: Options, evidence: Evidence) -> Iterator[Finding]:
    if policy.processes:
        from .check_processes import check_processes

        yield from check_processes(policy.processes, evidence, options.probe)


def _check_shm(policy: Policy, _options: Options, _evidence: Evidence) -> Iterator[Finding]:
    if policy.shared_memory is not None:
        from .check_shm import check_shm

        yield check_shm(policy.shared_memory)


def _check_slurm(policy: Policy, options: Options, evidence: Evidence) -> Iterator[Finding]:
    if policy.slurm:
        from .check_slurm import check_slurm

        asks = options.canary != "never"
        yield from check_slurm(policy.slurm, options.users, asks, options.probe, evidence)


def _check_steps(policy: Policy, _options: Options, evidence: Evidence) -> Iterator[Finding]:
    if policy.slurm:
        from .check_slurm import check_steps

        yield from check_steps(policy.slurm, evidence)


def _check_training(policy: Policy, options: Options, evidence: Evidence) -> Iterator[Finding]:
    if policy.training:
        from .check_training import check_training

        yield from check_training(policy.training, options, evidence)


_LOOKS = {
    "kernel": _check_kernel,
    "sessions": _check_sessions,
    "services": _check_services,
    "docker": _check_docker,
    "podman": _check_podman,
    "containerd": _check_containerd,
    "processes": _check_processes,
    "shared_memory": _check_shm,
    "slurm": _check_slurm,
    "slurm_steps": _check_steps,
    "training": _check_training,
}
