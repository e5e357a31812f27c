# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain from the kernel to a process, link by link, even where nothing is wrong."""

from __future__ import annotations

import re

from .check_docker import NEW
from .explain_kernel import trace_kernel
from .explain_sessions import trace_session
from .policy.rlimit import RLIMITS
from .probe.evidence import Evidence
from .trace_docker import RUNNING, trace_docker
from .trace_processes import trace_process, trace_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy.cause import Link

_JOB = re.compile(r"job:slurm(?:/[A-Za-z0-9_.+-]+)?")
ACCEPTED = (
    f"kernel, session:USER@SERVICE, service:UNIT, process:PID, {NEW}, {RUNNING}NAME,"
    " job:slurm, job:slurm/PARTITION"
)
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
    if place == NEW or place.startswith(RUNNING):
        return trace_docker(place, item, evidence)
    if item not in RLIMITS:
        raise ValueError(f"{item!r} is no limit; accepted are {', '.join(RLIMITS)}")
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
