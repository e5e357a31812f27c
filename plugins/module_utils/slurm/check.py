# SPDX-License-Identifier: BSD-2-Clause
"""Judge what jobs of Slurm get, which a tiny job in each partition shows, against a policy."""

from __future__ import annotations

import pwd
from collections.abc import Iterator, Mapping, Sequence

from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement, judge_limits
from ..core.values import NamedTuple, Rlimit
from ..host.look import Look, Process, read_limits
from ..host.users import find_connecting_user, find_owner
from ..sessions.measure import has_shell, measure_sessions, pick_users
from .diagnose import Scene, SeenJob, explain_job, explain_propagation, explain_step
from .measure import Node, find_hindrance, find_node, try_job
from .policy import SlurmPolicy
from .read import find_steps
from .size_check import check_login, check_size, find_login, judge_untried_size
from .slurm_conf import EXCEPT, PROPAGATE, Propagation, read_shown

PLACE = "job:slurm"
_MOST_STEPS = 20  # Of running ones that fall short.
_WAYS = ("sshd", "login", "su")
"""The ways in whose session may submit a job, the likeliest first."""


class Login(NamedTuple):
    """The session that submits a job: whose it is, and its limits."""

    user: str
    who: str
    limits: Mapping[str, Rlimit]


def check_slurm(
    policy: SlurmPolicy,
    users: Sequence[str] | None,
    asks: bool,
    probe: str,
    look: Look,
    logins: bool = True,
) -> Iterator[Finding]:
    """Yield the findings of one job in each partition that the policy names.

    :param users: Who may submit it; by default somebody who stands for all.
    :param asks: Whether a job may be submitted.
    :param logins: Whether logins count that are adopted into a job.
    """
    try:
        scene = Scene(policy, look)
    except OSError as exc:
        yield from judge_limits(PLACE, policy.limits, None, "", f"slurm.conf: {exc}")
        return
    yield from _judge_propagation(policy, scene)
    if not asks or probe == "predict":
        reason = "no job was submitted (probe: predict, or canary: never)"
        yield from _judge_untried(PLACE, policy, scene, reason)
    elif policy.limits or policy.size:
        yield from _check_jobs(scene, users, probe, logins)


def _check_jobs(
    scene: Scene, users: Sequence[str] | None, probe: str, logins: bool
) -> Iterator[Finding]:
    """Yield the findings of the jobs of each partition."""
    policy = scene.policy
    node = find_node(scene.slurmd.pid if scene.slurmd else None)
    if isinstance(node, str):
        yield from _judge_untried(PLACE, policy, scene, f"Slurm does not answer: {node}")
        return
    login = open_login(choose_user(users), probe)
    if isinstance(login, str):
        yield from _judge_untried(PLACE, policy, scene, login)
        return
    for partition in policy.partitions or (find_partition(node),):
        place = f"{PLACE}/{partition}" if policy.partitions else PLACE
        hindrance = find_hindrance(node, partition)
        if hindrance:
            yield from _judge_untried(place, policy, scene, hindrance)
            continue
        if policy.limits:
            yield from _check_limits(place, login, (partition, node.name), scene, logins)
        if policy.size:
            job = try_job(login.user, login.limits, partition, node.name, policy.size)
            yield from check_size(place, policy.size, job, login.user, scene)


def _check_limits(
    place: str, login: Login, where: tuple[str, str], scene: Scene, logins: bool
) -> Iterator[Finding]:
    """Yield the findings of one job, and of a login to its node that is adopted into it.

    :param where: The partition, and the node if it must be a certain one.
    """
    policy, look = scene.policy, scene.look
    ssh = find_login(login.user, where[1], look) if logins else None
    meanwhile = ssh.open if ssh else None
    job = try_job(login.user, login.limits, *where, None, meanwhile)
    yield from _judge(place, policy, SeenJob(job, login.user, login.who, login.limits), scene)
    if ssh:
        yield from check_login(place, ssh, job.id, scene)


def _judge(place: str, policy: SlurmPolicy, seen: SeenJob, scene: Scene) -> Iterator[Finding]:
    job = seen.job
    if job.limits is None:
        yield from _judge_untried_limits(place, policy, scene, job.reason)
        return
    how = f"/proc/self/limits in job {job.id} of {seen.user} on {job.node}"
    yield from explain_job(judge_limits(place, policy.limits, job.limits, how), seen, scene)


def _judge_untried(place: str, policy: SlurmPolicy, scene: Scene, reason: str) -> Iterator[Finding]:
    """Judge what no job could show."""
    yield from _judge_untried_limits(place, policy, scene, reason)
    if policy.size:
        yield from judge_untried_size(place, policy.size, reason)


def _judge_untried_limits(
    place: str, policy: SlurmPolicy, scene: Scene, reason: str
) -> Iterator[Finding]:
    """Judge limits without a job: no job has more than slurmd may give, unless PAM raises it."""
    ceiling = scene.ceiling
    for finding in judge_limits(place, policy.limits, None, "", reason):
        wanted = finding.requirement
        least = wanted.minimum or 0
        if ceiling is None or wanted.item not in ceiling or ceiling[wanted.item].hard >= least:
            yield finding
            continue
        how = f"/proc/{scene.slurmd.pid}/limits of slurmd" if scene.slurmd else ""
        seen = Observation(ceiling[wanted.item].hard, f"{how}, above which no job gets; {reason}")
        failed = Finding(FAIL, wanted, seen)
        yield from explain_job([failed], None, scene)


def _judge_propagation(policy: SlurmPolicy, scene: Scene) -> Iterator[Finding]:
    """Judge which soft limits Slurm hands on, where the policy says which it may."""
    if policy.propagate is None:
        return
    allowed = ", ".join(sorted(policy.propagate)) or "none"
    wanted = Requirement(PLACE, "propagate", "value", exact=allowed)
    running = find_running(scene.shown)
    if running is None:
        yield Finding(UNKNOWN, wanted, Observation(None, "", "Slurm's controller is silent"))
        return
    value = ", ".join(sorted(running.items)) or "none"
    status = PASS if running.items <= policy.propagate else FAIL
    finding = Finding(status, wanted, Observation(value, "scontrol show config"))
    yield explain_propagation(finding, running, scene)


def check_steps(policy: SlurmPolicy, look: Look) -> Iterator[Finding]:
    """Yield what the steps lack that run here; the first ones, where there are many.

    Only a process of root is slurmstepd, whose hard limits are those of slurmd; everybody may run
    a program of that name, one with the set-user-ID bit among them.
    """
    short = 0
    steps = list(find_steps(one for one in look.processes if _is_slurmstepd(one)))
    if not steps:
        return
    try:
        scene = Scene(policy, look)
    except OSError:
        return  # The jobs' own section says so.
    for step, pid in steps:
        try:
            limits = read_limits(pid)
        except (OSError, ValueError):
            continue  # It ended since it was listed.
        how = f"/proc/{pid}/limits of slurmstepd"
        findings = judge_limits(f"{PLACE}/{step}", policy.of_steps, limits, how)
        lacking = [one for one in findings if one.status == FAIL]
        short += bool(lacking)
        if short <= _MOST_STEPS:
            yield from explain_step(lacking, step, pid, scene)


def _is_slurmstepd(process: Process) -> bool:
    try:
        return process.comm == "slurmstepd" and not find_owner(process)
    except (OSError, ValueError):
        return False  # It has ended.


def find_running(shown: Mapping[str, str]) -> Propagation | None:
    """Return what the controller runs with; nothing where it does not say."""
    return read_shown(shown.get(PROPAGATE.lower(), ""), shown.get(EXCEPT.lower(), ""))


def find_partition(node: Node) -> str:
    """Return the partition that a job gets which names none, or else one of this node."""
    if node.default or not node.name:
        return node.default
    return next(iter(node.partitions), "")


def choose_user(users: Sequence[str] | None) -> str:
    """Return who submits the job: somebody who is not root, where there is anybody."""
    people = [user for user in users or () if user != "root"]
    connecting = find_connecting_user()
    people += [connecting] if connecting and not users else []
    return next(iter([*people, *pick_users(1)]), "root")


def open_login(user: str, probe: str) -> Login | str:
    """Return the session from which a user submits jobs, or why there is none.

    It is as PAM gives it: what the user's own shell makes of it is the user's affair.
    """
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        return f"there is no user {user!r} on this host to submit a job"
    if not has_shell(entry):
        return f"{user} has no shell, and cannot submit a job"
    reason = ""
    for way in _WAYS:
        (session,) = measure_sessions([(way, user)], probe)
        if session.limits is not None:
            return Login(user, f"session:{user}@{way}", session.limits)
        reason = reason or session.reason
    return f"no session of {user} opens from which a job could be submitted: {reason}"
