# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain from the kernel to a process, link by link, even where nothing is wrong."""

from __future__ import annotations

import re

from .policy.rlimit import RLIMITS
from .policy.services_policy import TASKS
from .probe.evidence import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy.cause import Link

ACCEPTED = ", ".join(
    (
        "kernel",
        "session:USER@SERVICE",
        "service:UNIT",
        "new-service:system",
        "new-service:USER",
        "process:PID",
        "new-container:docker",
        "container:docker/NAME",
        "new-container:docker/USER",
        "container:docker/USER/NAME",
        "new-container:podman",
        "new-container:podman/USER",
        "container:podman/NAME",
        "container:podman/USER/NAME",
        "new-container:containerd",
        "job:slurm",
        "job:slurm/PARTITION",
        "job:slurm@ssh",
        "path:/dev/shm",
    )
)
_PROCESS = re.compile(r"([0-9]+)(?: .*)?")
_SESSION = re.compile(r"(.+)@([^@]+)")
_JOB = re.compile(r"slurm(?:/[A-Za-z0-9_.+-]+)?(?:@ssh)?")


def explain(place: str, item: str) -> list[Link]:
    """Return every link that has a say in one limit of one place, in the order of their words.

    :param item: A limit, or a sysctl where the place is ``kernel``.
    :raises ValueError: If there is no such place or item here.
    """
    evidence = Evidence()
    kind, _colon, name = place.partition(":")
    for explain_kind in (_explain_host, _explain_container, _explain_unit, _explain_login):
        links = explain_kind(kind, name, item, evidence)
        if links is not None:
            return links
    raise ValueError(f"{place!r} is no place to explain; accepted are {ACCEPTED}")


def _explain_host(kind: str, name: str, item: str, evidence: Evidence) -> list[Link] | None:
    """Return the chain of a sysctl or of /dev/shm; nothing where the place is another one."""
    if kind == "kernel" and not name:
        from .explain_kernel import trace_kernel

        return trace_kernel(item, evidence)
    if kind == "path":
        from .check_shm import trace_path

        return trace_path(f"{kind}:{name}", item)
    return None


def _explain_container(kind: str, name: str, item: str, evidence: Evidence) -> list[Link] | None:
    """Return the chain of a container; nothing where the place is another one."""
    engine, _slash, rest = name.partition("/")
    if kind not in ("container", "new-container"):
        return None
    if engine == "docker":
        from .trace_docker import trace_docker

        return trace_docker(f"{kind}:{name}", item, evidence)
    if kind == "new-container" and engine == "podman":
        from .trace_podman import trace_podman

        return trace_podman(rest, item, evidence)
    if engine == "podman":
        from .trace_podman import trace_running

        return trace_running(f"{kind}:{name}", item, evidence)
    if kind == "new-container" and name == "containerd":
        from .trace_podman import trace_containerd

        return trace_containerd(item, evidence)
    return None


def _explain_unit(kind: str, name: str, item: str, evidence: Evidence) -> list[Link] | None:
    """Return the chain of a service, or of a new one; nothing where the place is another one."""
    if kind == "new-service" or (kind == "service" and item == TASKS):
        from .trace_services import trace_new_service, trace_tasks

        if kind == "service":
            return trace_tasks(name, evidence)
        return trace_new_service(f"{kind}:{name}", item, evidence)
    if kind == "service":
        from .trace_processes import trace_unit

        return trace_unit(name, _require_limit(item), evidence)
    return None


def _explain_login(kind: str, name: str, item: str, evidence: Evidence) -> list[Link] | None:
    """Return the chain of a session, a process or a job; nothing where it is none of these."""
    session, process = _SESSION.fullmatch(name), _PROCESS.fullmatch(name)
    if kind == "session" and session:
        from .explain_sessions import trace_session

        return list(trace_session(session[1], session[2], _require_limit(item), evidence))
    if kind == "process" and process:
        from .trace_processes import trace_process

        return trace_process(int(process[1]), _require_limit(item), evidence)
    if kind == "job" and _JOB.fullmatch(name):
        from .trace_slurm import trace_slurm

        return trace_slurm(f"{kind}:{name}", _require_limit(item), evidence)
    return None


def _require_limit(item: str) -> str:
    if item not in RLIMITS:
        raise ValueError(f"{item!r} is no limit; accepted are {', '.join(RLIMITS)}")
    return item
