# SPDX-License-Identifier: BSD-2-Clause
"""Judge Podman's running containers, and what a new one would get, against a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..containers.cgroup import PODMAN
from ..containers.findings import NEVER, judge_canary, judge_container, judge_container_unknown
from ..containers.limits_read import read_container_limits
from ..containers.policy import TASKS, ContainerPolicy
from ..containers.read import RunningContainer, find_maker, find_running
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, judge
from ..core.process_owner import own_running
from ..core.values import Declaration, NamedTuple, Rlimit
from ..host.look import Look
from ..host.users import name_user
from ..kernel.host_read import KernelRead
from ..sessions.measure import measure_sessions
from .causes import blame_environment, foresee
from .diagnose import explain_podman, explain_running_tasks, gather_podman
from .environment_read import find_named_files
from .measure import Caller, run_podman_canary
from .read import find_podman, find_quadlet, read_created
from .running import Made, explain_running

NEW = "new-container:podman"
_WAYS = ("sshd", "login", "su")


class Session(NamedTuple):
    """What a user's session gives, through which way; ``reason`` says why that is not known."""

    limits: Mapping[str, Rlimit] = {}
    way: str = ""
    reason: str = ""


def check_podman(
    policy: ContainerPolicy, canary: str, look: Look, seconds: float
) -> Iterator[Finding]:
    """Yield the findings of every running container, and of a new one of root and of each user.

    :param canary: ``never`` leaves a new container unknown.
    :param seconds: How long the trial of one user's container may take: each holds up the others.
    """
    for one in find_running(look.processes, (PODMAN,)):
        yield from _look(one, policy, look)
    for user in ("", *policy.users):
        yield from check_new(policy, user, canary, look, seconds)


def check_new(
    policy: ContainerPolicy, user: str, canary: str, look: Look, seconds: float
) -> Iterator[Finding]:
    """Yield the findings of a new container of root, or of a user's own."""
    place = name_place(user)
    session = open_session(user)
    reason = session.reason or ("" if find_podman() else "podman is not installed on this host")
    if canary == "never":
        reason = NEVER
    if reason:
        yield from judge_container_unknown(place, policy, reason)
        return
    seen = run_podman_canary(Caller(user, session.limits), seconds=seconds)
    how = "canary container" + (f", from a session through {session.way}" if user else "")
    findings = judge_canary(place, policy, seen, how)
    levels = seen.found.levels if seen.found else ()
    facts = gather_podman(user, look, session.limits, session.way)
    named = next(find_named_files(), None)
    for finding in explain_podman(findings, policy, facts, look, levels):
        told = _own(finding, user, session, look) if user else finding
        yield _doubt(told, named) if named else told


def _doubt(finding: Finding, named: Declaration) -> Finding:
    """Return the finding of a new container, unless the session reads another file."""
    if finding.status != PASS:
        return finding
    cause = blame_environment(named)
    seen = finding.observation._replace(value=None, reason=cause.text)
    return finding._replace(status=UNKNOWN, observation=seen, causes=(cause,))


def _own(finding: Finding, user: str, session: Session, look: Look) -> Finding:
    """Return the finding of a user's new container with whose doing it is.

    It is root's where PAM's session or the files of root alone give too little.
    """
    if finding.status == PASS:
        return finding
    if finding.requirement.item == TASKS and finding.status == UNKNOWN:
        reason = f"a trial of {user}'s has no cgroup of its own: a container that runs shows it"
        return judge(finding.requirement, Observation(None, "", reason))._replace(owner=user)
    wanted, pair = finding.requirement, session.limits.get(finding.requirement.item)
    facts = gather_podman("", look, session.limits, session.way)
    given = foresee(wanted, facts._replace(user=user), look.at(KernelRead).nr_open) if facts else ""
    if not given and pair:  # What no file states is the session's.
        given = PASS if wanted.is_met_by(wanted.pick(pair)) else FAIL
    is_root_s = finding.status == FAIL and given == FAIL
    return finding if is_root_s else finding._replace(owner=user)


def name_place(user: str) -> str:
    """Return the place of a new container of root, or of a user's own."""
    return f"{NEW}/{user}" if user else NEW


def open_session(user: str) -> Session:
    """Return the limits from which a user's containers start; root's are its caller's."""
    if not user:
        return Session()
    results = measure_sessions([(way, user) for way in _WAYS])
    for result in results:
        if result.limits is not None:
            return Session(result.limits, result.service)
    return Session(reason=f"no session of {user} could be opened: {results[0].reason}")


def _look(one: RunningContainer, policy: ContainerPolicy, look: Look) -> Iterator[Finding]:
    """Yield the findings of a running container, with why it falls short."""
    pid = one.process.pid
    try:
        found = read_container_limits(pid)
    except OSError:
        return  # It ended since it was listed.
    user, place = name_owner(one.owner), name_running(one)
    findings = judge_container(place, policy, found, f"/proc/{pid}/limits")
    if all(finding.status != FAIL for finding in findings):
        yield from findings
        return
    facts, quadlet = gather_podman(user, look, {}, ""), find_quadlet(one.process.cgroup)
    made = Made(one.container.id, read_created(one), quadlet, find_maker(one))
    for finding in findings:
        if finding.requirement.item == TASKS:
            yield explain_running_tasks(finding, found.levels, made, facts, policy)
        else:
            yield own_running(explain_running(finding, made, facts, policy), made.maker)


def name_running(one: RunningContainer) -> str:
    """Return the place of a running container of root, or of a user's own."""
    user, name = name_owner(one.owner), one.container.name.partition("/")[2]
    return f"container:podman/{user}/{name}" if user else f"container:podman/{name}"


def name_owner(uid: int) -> str:
    """Return the user whose containers are meant; root's are nobody's."""
    return name_user(uid) if uid else ""
