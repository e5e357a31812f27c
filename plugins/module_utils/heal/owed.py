# SPDX-License-Identifier: BSD-2-Clause
"""What a policy owes a process that runs, by where it lives; no name counts that its user chose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..containers.cgroup import DOCKER, PODMAN, find_container
from ..core.cgroup import find_home, find_paths, list_units
from ..core.policy import Policy
from ..core.reader import Limit
from ..core.values import RLIMITS, NamedTuple, User
from ..processes.causes import merge_limits
from ..processes.policy import ProcessRule
from ..services.policy import find_rule
from ..sessions.rules import find_limits

CONTAINER, JOB, SESSION, UNIT, OWN_UNIT = "container", "job", "session", "service", "user-service"
_JOB = re.compile(
    r"/(?:system\.slice/(?:[\w.-]+_)?slurmstepd\.scope|slurm(?:_[\w.-]+)?/uid_\d+)/job_(\d+)(?:/|$)"
)
_ENGINES = (DOCKER, PODMAN)


class Home(NamedTuple):
    """Where a process lives; ``name`` is as check names it, of a container its id."""

    kind: str
    name: str
    engine: str = ""

    @property
    def place(self) -> str:
        """The place as check names it."""
        name = f"{self.engine}/{self.name[:12]}" if self.engine else self.name
        return f"{self.kind}:{name}"


class Owed(NamedTuple):
    """What a policy asks of one place: limits, tasks of its cgroup, bytes of its /dev/shm."""

    limits: Mapping[str, Limit] = {}
    tasks: int | None = None
    shm_size: int | None = None


def find_living(cgroup: str, user: str) -> Home | None:
    """Return where a process lives; nothing where that cannot be proved.

    Below their slice, and in a service that is theirs, users make cgroups of any name.

    :param cgroup: /proc/PID/cgroup.
    :param user: Whose process it is.
    """
    container = find_container(cgroup)
    if container:
        proved = container.engine in _ENGINES and container.uid is None and _is_roots(cgroup)
        return Home(CONTAINER, container.id, container.engine) if proved else None
    job = next(filter(None, map(_JOB.match, find_paths(cgroup).values())), None)
    if job:
        return Home(JOB, job[1])
    home, units = find_home(cgroup), list_units(cgroup)
    if home.session or (home.uid is not None and not home.user_unit.endswith(".service")):
        return Home(SESSION, user)
    if home.uid is not None:
        return Home(OWN_UNIT, home.user_unit)
    inner = home.unit or (units[-1] if units else "")
    if inner.endswith((".service", ".scope")):
        return Home(UNIT, inner)
    paths = find_paths(cgroup)
    is_bare = (paths.get("name=systemd") or paths.get("")) == "/"
    return Home(SESSION, user) if is_bare else None  # Nobody sorts processes here.


def _is_roots(cgroup: str) -> bool:
    """Tell whether root alone can have made all of a container's cgroups."""
    for path in find_paths(cgroup).values():
        parts = path.split("/")
        if parts[1:2] == ["user.slice"] or any(part.endswith(".service") for part in parts):
            return False
    return True


def find_owed(policy: Policy, home: Home, user: User, comm: str, cgroup: str) -> Owed:
    """Return what a policy owes a process in its place, with what it asks of running processes.

    :param user: Whose it is. The other two are of /proc/PID.
    """
    owed = _find_owed(policy, home, user)
    rules = [
        one.limits
        for one in policy.get("processes") or ()
        if _is_meant(one, user, comm, list_units(cgroup))
    ]
    limits = merge_limits([owed.limits, *rules])
    return owed._replace(limits={item: one for item, one in limits.items() if item in RLIMITS})


def _find_owed(policy: Policy, home: Home, user: User) -> Owed:
    if home.kind == CONTAINER:
        engine = policy.get(home.engine)
        return Owed(engine.limits, engine.tasks, engine.shm_size) if engine else Owed()
    shm_size, services = policy.get("shared_memory"), policy.get("services")
    if home.kind == JOB:
        jobs = policy.get("slurm")
        return Owed(jobs.limits if jobs else {}, None, shm_size)
    if home.kind == SESSION:
        return Owed(find_limits(policy.get("sessions") or (), user), None, shm_size)
    if services is None:
        return Owed({}, None, shm_size)
    if home.kind == OWN_UNIT:
        return Owed(services.user_default.limits, None, shm_size)
    rule = find_rule(services.units, home.name, home.name)
    return Owed(rule.limits, rule.tasks, shm_size)


def _is_meant(rule: ProcessRule, user: User, comm: str, units: Sequence[str]) -> bool:
    """Tell whether a rule for running processes means one: of names, those of root's alone."""
    if rule.by == "name":
        return user.uid == 0 and comm == rule.value[:15]
    return rule.value in units if rule.by == "unit" else user.name == rule.value
