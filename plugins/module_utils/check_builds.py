# SPDX-License-Identifier: BSD-2-Clause
"""Judge what a step of BuildKit gets on this host against a policy."""

from __future__ import annotations

import re

from .check_docker import describe_absence
from .explain_processes import tell
from .explain_units import judge_unit
from .policy.cause import Link
from .policy.docker_builds import inherit_nofile
from .policy.docker_site import Tools
from .policy.finding import UNKNOWN, judge_limits
from .policy.process_causes import format_pair
from .policy.unit_model import predict_unit
from .probe.process import read_limits, read_start_time
from .probe.unit_sources import find_change
from .trace_processes import trace_unit
from .unit_facts import Seen, World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .policy.cause import Cause
    from .policy.finding import Finding
    from .policy.rlimit import Rlimit
    from .policy.schema import DockerPolicy
    from .probe.docker_evidence import DockerEvidence
    from .probe.evidence import Evidence
    from .probe.process import Process

PLACE = "build:docker"
_HIDDEN = (
    "dockerd raised its own soft limit, and what it was started with, which its builds have,"
    " is not told"
)


def check_builds(policy: DockerPolicy, evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings of a build's step, which inherits dockerd's limits."""
    docker, daemon = evidence.docker, evidence.docker.daemon
    if daemon is None:
        yield from judge_limits(PLACE, policy.limits, None, "", describe_absence(evidence))
        return
    world, process = World(evidence), daemon.process
    try:
        limits = read_limits(process.pid)
    except OSError:
        yield from judge_limits(PLACE, policy.limits, None, "", "dockerd ended meanwhile")
        return
    nofile = _inherit(limits["nofile"], docker, world)
    limits["nofile"] = nofile or limits["nofile"]
    how = f"/proc/{process.pid}/limits of dockerd, which steps of BuildKit inherit"
    findings = judge_limits(PLACE, policy.limits, limits, how)
    if nofile is None:
        findings = [_hide(finding) for finding in findings]
    seen = Seen(process, limits, policy.limits, findings)
    try:
        told = judge_unit(seen, docker.unit, world) if docker.unit else {}
    except (OSError, ValueError):
        told = {}
    tools = Tools(docker.restarted_by, bool(told) and not docker.live_restore)
    for finding in findings:
        yield _restart_docker(tell(finding, told, unseen=True), tools)


def trace_builds(item: str, evidence: Evidence) -> list[Link]:
    """Return the chain of one limit of a build's step: that of dockerd's service, and the step.

    :raises OSError: If a file cannot be read.
    :raises ValueError: If systemd does not run dockerd, or its unit cannot be understood.
    """
    docker, daemon = evidence.docker, evidence.docker.daemon
    if not docker.unit:
        raise ValueError("dockerd was not started by systemd, so that no unit limits its builds")
    links = trace_unit(docker.unit, item, evidence)
    if daemon:
        limit = read_limits(daemon.process.pid)[item]
        known = _inherit(limit, docker, World(evidence)) if item == "nofile" else limit
        value = format_pair(item, known) if known else "unknown"
        links.append(Link("step", value, "of BuildKit: what dockerd was started with"))
    return links


def _inherit(nofile: Rlimit, docker: DockerEvidence, world: World) -> Rlimit | None:
    process = docker.daemon.process if docker.daemon else None
    given = _find_given(docker.unit, process, world) if process and docker.unit else None
    return inherit_nofile(nofile, docker.go_version, given)


def _find_given(unit: str, process: Process, world: World) -> Rlimit | None:
    """Return the nofile that a unit's process was started with, where its files still say so."""
    known, shown = world.find_unit(unit), world.show_unit(unit)
    if known is None:
        return None
    facts, started = known[0], read_start_time(process)
    if shown and 0 < shown.loaded_at < started:
        return shown.limits["nofile"]  # The manager has read nothing since.
    path = find_change(facts.files, unit, started)[0]
    if path.endswith((".conf", ".service", f"/{unit}.d")):
        return None
    limits = predict_unit(facts)
    return limits["nofile"] if limits else None


def _restart_docker(finding: Finding, tools: Tools) -> Finding:
    """Let remedies restart dockerd as it must be, and say what that does to containers."""
    return finding._replace(causes=tuple(_with_restart(cause, tools) for cause in finding.causes))


def _with_restart(cause: Cause, tools: Tools) -> Cause:
    remedy = cause.remedy
    others = [words for words in remedy.commands if words[:2] != ("systemctl", "restart")]
    if len(others) == len(remedy.commands):
        return cause
    text = re.sub(f"(, and |^)restart {re.escape(tools.unit)}$", "", remedy.text)
    return cause._replace(remedy=tools.restart(text, others))


def _hide(finding: Finding) -> Finding:
    """Return a finding on a soft nofile as unknown, and any other as it is."""
    wanted = finding.requirement
    if (wanted.item, wanted.bound) != ("nofile", "soft"):
        return finding
    unseen = finding.observation._replace(value=None, reason=_HIDDEN)
    return finding._replace(status=UNKNOWN, observation=unseen)
