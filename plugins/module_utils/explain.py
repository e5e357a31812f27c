# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain from the kernel to a process, link by link, even where nothing is wrong."""

from __future__ import annotations

import re

from .check_containerd import NEW as NEW_OF_CONTAINERD
from .check_docker import NEW
from .check_podman import NEW as NEW_OF_PODMAN
from .check_shm import PLACE as SHM_PLACE
from .check_shm import trace_path
from .explain_kernel import trace_kernel
from .explain_sessions import trace_session
from .policy.rlimit import RLIMITS
from .probe.evidence import Evidence
from .trace_docker import RUNNING, trace_docker
from .trace_podman import trace_containerd, trace_podman
from .trace_processes import trace_process, trace_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy.cause import Link

ACCEPTED = ", ".join(
    (
        "kernel",
        "session:USER@SERVICE",
        "service:UNIT",
        "process:PID",
        NEW,
        f"{RUNNING}NAME",
        NEW_OF_PODMAN,
        f"{NEW_OF_PODMAN}/USER",
        NEW_OF_CONTAINERD,
        "job:slurm",
        "job:slurm/PARTITION",
        SHM_PLACE,
    )
)
_PATH = "path:"
_JOB = re.compile(r"job:slurm(?:/[A-Za-z0-9_.+-]+)?")
_SERVICE = "service:"
_PROCESS = re.compile(r"process:([0-9]+)(?: .*)?")
_SESSION = re.compile(r"session:(.+)@([^@]+)")


def explain(place: str, item: str) -> list[Link]:
    """Return every link that has a say in one limit of one place, in the order of their words.

    :param item: A limit, or a sysctl where the place is ``kernel``.
    :raises ValueError: If there is no such place or item here.
    """
    evidence = Evidence()
    if place == "kernel":
        return trace_kernel(item, evidence)
    if place.startswith(_PATH):
        return trace_path(place, item)
    links = _explain_container(place, item, evidence)
    if links is not None:
        return links
    if item not in RLIMITS:
        raise ValueError(f"{item!r} is no limit; accepted are {', '.join(RLIMITS)}")
    return _explain_process(place, item, evidence)


def _explain_process(place: str, item: str, evidence: Evidence) -> list[Link]:
    """Return the chain of a session, a job, a service or a process."""
    session, process = _SESSION.fullmatch(place), _PROCESS.fullmatch(place)
    if session:
        return list(trace_session(session[1], session[2], item, evidence))
    if process:
        return trace_process(int(process[1]), item, evidence)
    if _JOB.fullmatch(place):
        from .trace_slurm import trace_slurm  # Few hosts have Slurm.

        return trace_slurm(place, item, evidence)
    if place.startswith(_SERVICE):
        return trace_unit(place[len(_SERVICE) :], item, evidence)
    raise ValueError(f"{place!r} is no place to explain; accepted are {ACCEPTED}")


def _explain_container(place: str, item: str, evidence: Evidence) -> list[Link] | None:
    """Return the chain of a container; nothing where the place is another one."""
    if place == NEW or place.startswith(RUNNING):
        return trace_docker(place, item, evidence)
    if place == NEW_OF_PODMAN or place.startswith(f"{NEW_OF_PODMAN}/"):
        return trace_podman(place[len(NEW_OF_PODMAN) + 1 :], item, evidence)
    if place == NEW_OF_CONTAINERD:
        return trace_containerd(item, evidence)
    return None
