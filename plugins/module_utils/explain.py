# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain from the kernel to a process, link by link, even where nothing is wrong."""

from __future__ import annotations

import re

from .check_docker import NEW
from .explain_kernel import trace_kernel
from .explain_sessions import trace_session
from .policy.rlimit import RLIMITS
from .policy.services_policy import TASKS
from .probe.evidence import Evidence
from .trace_docker import RUNNING, trace_docker
from .trace_processes import trace_process, trace_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy.cause import Link

_NEW_SERVICE = "new-service:"
ACCEPTED = (
    f"kernel, session:USER@SERVICE, service:UNIT, {_NEW_SERVICE}system, {_NEW_SERVICE}USER,"
    f" process:PID, {NEW}, {RUNNING}NAME"
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
    unit = place[len(_SERVICE) :] if place.startswith(_SERVICE) else ""
    if place.startswith(_NEW_SERVICE) or (unit and item == TASKS):
        from .trace_services import trace_new_service, trace_tasks  # Long, and seldom asked.

        return trace_tasks(unit, evidence) if unit else trace_new_service(place, item, evidence)
    if item not in RLIMITS:
        raise ValueError(f"{item!r} is no limit; accepted are {', '.join(RLIMITS)}")
    session, process = _SESSION.fullmatch(place), _PROCESS.fullmatch(place)
    if session:
        return list(trace_session(session[1], session[2], item, evidence))
    if process:
        return trace_process(int(process[1]), item, evidence)
    if unit:
        return trace_unit(unit, item, evidence)
    raise ValueError(f"{place!r} is no place to explain; accepted are {ACCEPTED}")
