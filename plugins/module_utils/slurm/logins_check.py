# SPDX-License-Identifier: BSD-2-Clause
"""Judge a login to the node that pam_slurm_adopt takes into a running job against a policy."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.finding import Finding, judge_limits
from ..sessions.check import judge_measured
from ..sessions.diagnose import explain_sessions
from ..sessions.host_read import SessionsRead
from ..sessions.measure import SessionResult, measure_sessions
from ..sessions.shell_limits_measure import measure_shells
from .adoption import ADOPT, blame_flags, describe_adoption, find_adopting, find_leaving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.look import Look
    from .diagnose import Scene

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
    shell = measure_shells([seen], list(policy.limits)).get(("sshd", login.user))
    leaving = find_leaving(scene.look.at(SessionsRead).pam_files)
    adopted = f"; {describe_adoption(seen.cgroup, job, leaving)}"
    findings = [
        one._replace(observation=one.observation._replace(how=one.observation.how + adopted))
        for one in judge_measured(place, policy.limits, seen, shell)
    ]
    yield from explain_sessions([(seen, findings, shell)], scene.look)
