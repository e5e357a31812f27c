# SPDX-License-Identifier: BSD-2-Clause
"""Judge the memory and the CPUs that a job of Slurm may use of what it asks for."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..core.cause import Cause, Outlook
from ..core.finding import FAIL, PASS, Finding, Observation, Requirement, judge, judge_limits
from ..host.files import read_text
from ..sessions.check import judge_measured
from ..sessions.diagnose import explain_sessions
from ..sessions.host_read import SessionsRead
from ..sessions.measure import SessionResult, measure_sessions
from ..sessions.shell_clock_measure import ShellClock
from ..sessions.shell_limits_measure import measure_shells
from ..systemd.sources_read import read_sources
from .adoption import ADOPT, blame_flags, describe_adoption, find_adopting, find_leaving
from .confine_causes import (
    Asked,
    Surroundings,
    blame_conf,
    find_confine_causes,
    list_levels,
    name_unit,
)
from .plan import UNIT
from .slurm_conf import parse_slurm_conf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.look import Look
    from ..systemd.model import Files
    from .confines import Confines, Size
    from .diagnose import Scene
    from .measure import Job


def judge_untried_size(place: str, size: Size, reason: str) -> Iterator[Finding]:
    """Yield that nobody knows what a job would get."""
    for wanted in _require(place, size):
        yield judge(wanted, Observation(None, "", reason))


def check_size(place: str, size: Size, job: Job, user: str, scene: Scene) -> Iterator[Finding]:
    """Yield whether a job got what it asked for."""
    confines = job.confines
    if job.limits is None or confines is None:
        yield from judge_untried_size(place, size, job.reason)
        return
    whose = f"job {job.id} of {user} on {job.node}, which asked for as much"
    for wanted in _require(place, size):
        seen = Observation(confines.cpus or None, f"Cpus_allowed_list in {whose}")
        if wanted.item == "memory":
            low = confines.lowest
            how = f"{low.path or 'no cgroup'} bounds the memory of {whose}"
            seen = Observation(low.most, how)
        elif not confines.cpus:
            seen = seen._replace(reason="the job did not say on which CPUs it may run")
        finding = judge(wanted, seen)
        yield _explain(finding, confines, scene) if seen.value else finding


def _require(place: str, size: Size) -> Iterator[Requirement]:
    if size.memory is not None:
        yield Requirement(place, "memory", "value", size.memory, unit="bytes")
    if size.cpus is not None:
        yield Requirement(place, "cpus", "value", size.cpus)


def _explain(finding: Finding, confines: Confines, scene: Scene) -> Finding:
    """Return a finding with its causes: lines of cgroup.conf, or of the units above."""
    wanted = finding.requirement
    asked = Asked(wanted.item, wanted.minimum or 0)
    try:
        around = _look_around(asked, confines, scene)
    except (OSError, ValueError):
        return finding
    causes: tuple[Cause, ...] = ()
    if finding.status == FAIL:
        causes = find_confine_causes(asked, confines, around)
    elif asked.item == "memory" and any(level.is_jobs for level in confines.memory):
        causes = tuple(blame_conf(asked.amount, confines.total, around))
    lasts = any(cause.at and not cause.at.path.startswith("/run/") for cause in causes)
    known = bool(causes) or finding.status == PASS
    after = (FAIL if lasts else PASS) if known else ""
    return finding._replace(causes=causes, outlook=Outlook("", after, after))


def _look_around(asked: Asked, confines: Confines, scene: Scene) -> Surroundings:
    """Return what may confine a job.

    :raises OSError, ValueError: If the files cannot be read or understood.
    """
    path = f"{os.path.dirname(scene.files.path)}/cgroup.conf"
    conf = parse_slurm_conf({path: read_text(path) or ""}, path)
    short = [one for one in list_levels(asked.item, confines) if one.most < asked.amount]
    units: dict[str, Files] = {
        unit: read_sources(unit)
        for unit in (*(name_unit(level) for level in short), UNIT)
        if unit and scene.slurmd
    }
    return Surroundings(conf, scene.files.served, units, os.cpu_count() or 1)


SSH = "@ssh"
"""What a place of a job ends with where a login is meant that was adopted into it."""


class JobLogin:
    """A login to the node of a job, to be opened while that runs."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.seen: SessionResult | None = None

    def open(self) -> None:
        """Open it as sshd does, with the module that adopts it, which the quiet ways leave out."""
        (self.seen,) = measure_sessions([("sshd", self.user)], besides=(ADOPT,))


def find_login(user: str, node: str, look: Look) -> JobLogin | None:
    """Return a login that is yet to be opened, where logins to this node are adopted."""
    is_adopted = user != "root" and node and find_adopting(look.at(SessionsRead).pam_files)
    return JobLogin(user) if is_adopted else None


def check_login(place: str, login: JobLogin, job: str, scene: Scene) -> Iterator[Finding]:
    """Yield the findings of a login that was opened while a job ran."""
    place, policy, seen = f"{place}{SSH}", scene.policy, login.seen
    if seen is None or seen.limits is None:
        reason = seen.reason if seen else "the job did not run, into which a login is adopted"
        cause = blame_flags(scene.shown, scene.conf) if seen else None
        for finding in judge_limits(place, policy.limits, None, "", reason):
            yield finding._replace(causes=(cause,) if cause else ())
        return
    shells = measure_shells([seen], list(policy.limits), clock=scene.look.at(ShellClock))
    shell = shells.get(("sshd", login.user))
    leaving = find_leaving(scene.look.at(SessionsRead).pam_files)
    adopted = f"; {describe_adoption(seen.cgroup, job, leaving)}"
    findings = [
        one._replace(observation=one.observation._replace(how=one.observation.how + adopted))
        for one in judge_measured(place, policy.limits, seen, shell)
    ]
    yield from explain_sessions([(seen, findings, shell)], scene.look)
