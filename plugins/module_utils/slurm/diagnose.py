# SPDX-License-Identifier: BSD-2-Clause
"""Say why jobs of Slurm fall short, and whether they will after a restart or a boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ..core.cause import Cause, Outlook
from ..core.cgroup import find_home
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Requirement, judge_limits
from ..core.values import NamedTuple
from ..host.look import Look, Process, read_limits
from ..processes.units_diagnose import judge_unit
from ..sessions.diagnose import gather_session
from ..sessions.measure import SessionResult
from ..systemd.read import Seen, World
from .causes import (
    ConfFacts,
    blame_age,
    blame_hand,
    blame_other_host,
    blame_propagation,
    find_effective,
    find_job_causes,
    is_met,
    is_slurmd_short,
    need_of_slurmd,
)
from .model import JobFacts, JobPam, predict_job
from .plan import UNIT
from .read import SlurmFiles, find_slurmd, read_slurm_files, show_config
from .slurm_conf import Propagation, read_propagation, read_use_pam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.values import Rlimit
    from ..processes.causes import Verdict
    from .measure import Job
    from .policy import SlurmPolicy


class SeenJob(NamedTuple):
    """A job that was tried: who submitted it, from which session, and with which limits."""

    job: Job
    user: str
    who: str
    login: Mapping[str, Rlimit]


class Scene:
    """Slurm on this host: the daemon if it runs here, its files, and what they say."""

    def __init__(self, policy: SlurmPolicy, look: Look) -> None:
        """:raises OSError: If a file cannot be read."""
        self.policy = policy
        self.look = look
        self.slurmd: Process | None = find_slurmd()
        self.files: SlurmFiles = read_slurm_files(self.slurmd)
        self.limits: dict[str, Rlimit] = {}
        if self.slurmd:
            try:
                self.limits = read_limits(self.slurmd.pid)
            except OSError:
                self.slurmd = None  # It ended meanwhile.

    @cached_property
    def shown(self) -> dict[str, str]:
        """Return what the controller says that it runs with."""
        return show_config()

    @cached_property
    def propagation(self) -> Propagation | None:
        """Return what slurm.conf says, as far as it can be read."""
        try:
            return read_propagation(self.files.conf) if self.files.texts else None
        except ValueError:
            return None

    @property
    def ceiling(self) -> Mapping[str, Rlimit] | None:
        """Return the limits of slurmd, where no job can have more."""
        try:
            return self.limits if self.limits and not read_use_pam(self.files.conf) else None
        except ValueError:
            return None

    @cached_property
    def conf(self) -> ConfFacts:
        files = self.files
        text = files.texts.get(files.path, "")
        return ConfFacts(files.path, text, files.conf, self.policy.kept_back, files.served)

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """Return what is to be said of slurmd as a service, limit by limit."""
        propagation = self.propagation
        if self.slurmd is None or propagation is None or not self.runs_in_unit:
            return {}
        wanted = {
            item: need_of_slurmd(limit, item, item in propagation.items)
            for item, limit in self.policy.limits.items()
        }
        findings = judge_limits(UNIT, wanted, self.limits, "")
        seen = Seen(self.slurmd, self.limits, wanted, findings, UNIT)
        return judge_unit(seen, UNIT, World(self.look))

    @property
    def runs_in_unit(self) -> bool:
        return self.slurmd is not None and find_home(self.slurmd.cgroup).unit == UNIT

    def find_pam(self, user: str, limits: Mapping[str, Rlimit]) -> JobPam | None:
        """Return PAM's part in the jobs of a user, if it has one.

        :raises ValueError: If it has one and that cannot be told.
        """
        line = read_use_pam(self.files.conf)
        if line is None:
            return None
        result = SessionResult("slurm", user, None, "", base=limits)
        session = gather_session(result, self.look)
        if session is None:
            raise ValueError("what PAM makes of jobs is not known")
        return JobPam(line, session)


def explain_job(findings: Sequence[Finding], seen: SeenJob | None, scene: Scene) -> list[Finding]:
    """Return the findings of a job with their causes, and with what comes next.

    :param seen: The job; ``None`` where none was run, and slurmd alone keeps it from more.
    """
    if scene.slurmd is None or scene.propagation is None:
        return [_explain_elsewhere(finding, seen, scene) for finding in findings]
    try:
        facts = gather_job(seen, scene, scene.propagation) if seen else None
    except (OSError, ValueError):
        return list(findings)
    return [_explain(finding, seen, facts, scene) for finding in findings]


def gather_job(seen: SeenJob, scene: Scene, propagation: Propagation) -> JobFacts:
    """Return all that decides a job.

    :raises ValueError: If PAM's part cannot be told.
    """
    pam = scene.find_pam(seen.user, scene.limits)
    return JobFacts(scene.limits, seen.login, seen.who, propagation, pam)


def _explain(
    finding: Finding, seen: SeenJob | None, facts: JobFacts | None, scene: Scene
) -> Finding:
    wanted = finding.requirement
    item = wanted.item
    has = (seen.job.limits or {}).get(item) if seen else scene.limits[item]
    if has is None or finding.status == UNKNOWN:
        return finding
    if facts and find_effective(item, has, facts) is None:
        return finding._replace(outlook=Outlook("", UNKNOWN, UNKNOWN))  # Nothing explains it.
    causes = list(_blame_slurmd(wanted, finding, scene))
    if facts:
        causes += find_job_causes(wanted, has, facts, scene.conf)
    soon, boot = _foretell(wanted, facts, scene)
    if finding.status == PASS and FAIL in (soon, boot):
        causes = _explain_later(wanted, facts, scene)
    if finding.status == PASS and FAIL not in (soon, boot):
        verdict = scene.verdicts.get(item)
        causes = list(verdict.doubts) if verdict else []
    return finding._replace(causes=tuple(causes), outlook=Outlook("", soon, boot))


def _blame_slurmd(wanted: Requirement, finding: Finding, scene: Scene) -> Sequence[Cause]:
    """Return why slurmd itself has too little for a job."""
    item, propagation = wanted.item, scene.propagation
    propagated = propagation is not None and item in propagation.items
    if finding.status != FAIL or not is_slurmd_short(wanted, scene.limits[item], propagated):
        return ()
    if scene.slurmd and not scene.runs_in_unit:
        return (blame_hand(scene.slurmd.pid, UNIT, item, scene.limits[item]),)
    verdict = scene.verdicts.get(item)
    return verdict.causes if verdict else ()


def _foretell(wanted: Requirement, facts: JobFacts | None, scene: Scene) -> tuple[str, str]:
    """Return whether a job will do after slurmd is started anew, and after a boot."""
    verdict = scene.verdicts.get(wanted.item)
    if verdict is None:
        return UNKNOWN, UNKNOWN
    told = []
    for pair in (verdict.next_start, verdict.at_boot):
        if pair is None:
            told.append(UNKNOWN)
            continue
        later = facts and facts._replace(slurmd={**scene.limits, wanted.item: pair})
        given = predict_job(wanted.item, later) if later else pair
        told.append(PASS if is_met(wanted, given) else FAIL)
    return told[0], told[1]


def _explain_later(wanted: Requirement, facts: JobFacts | None, scene: Scene) -> list[Cause]:
    """Return why a job that does now will not later: the unit's files, or slurm.conf."""
    verdict = scene.verdicts.get(wanted.item)
    causes = list(verdict.causes) if verdict else []
    if facts and not causes:
        has = predict_job(wanted.item, facts)
        causes = find_job_causes(wanted, has, facts, scene.conf)
    return causes


def explain_step(
    findings: Sequence[Finding], step: str, pid: int, scene: Scene
) -> Iterator[Finding]:
    """Yield what a running step lacks, with why: it is old, or slurmd has too little still."""
    for finding in findings:
        wanted = finding.requirement
        causes = _blame_slurmd(wanted, finding, scene)
        now = scene.limits.get(wanted.item)
        if scene.slurmd and now and is_met(wanted, now):
            causes = (blame_age(step, pid, scene.slurmd.pid, wanted.item, now),)
        yield finding._replace(causes=tuple(causes))


def _explain_elsewhere(finding: Finding, seen: SeenJob | None, scene: Scene) -> Finding:
    """Say why a job that ran on another host falls short, as far as that shows from here."""
    wanted = finding.requirement
    has = (seen.job.limits or {}).get(wanted.item) if seen else None
    if finding.status != FAIL or seen is None or has is None:
        return finding
    item, propagation = wanted.item, scene.propagation
    if propagation is None or not is_met(wanted, has._replace(soft=has.hard)):
        return finding._replace(causes=(blame_other_host(seen.job.node, item, has),))
    other = {**(seen.job.limits or {}), item: has._replace(soft=has.hard)}
    facts = JobFacts(other, seen.login, seen.who, propagation)
    return finding._replace(causes=tuple(find_job_causes(wanted, has, facts, scene.conf)))


def explain_propagation(finding: Finding, running: Propagation, scene: Scene) -> Finding:
    """Return the finding of what Slurm hands on, with its cause and with what comes next."""
    stated = scene.propagation
    if stated is None:
        return finding
    later = FAIL if stated.items & scene.policy.kept_back else PASS
    asked = running.items if finding.status == FAIL else stated.items
    cause = blame_propagation(stated.line, stated, asked, scene.conf)
    return finding._replace(
        causes=(cause,) if cause and FAIL in (finding.status, later) else (),
        outlook=Outlook("", later, later),
    )
