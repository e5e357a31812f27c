# SPDX-License-Identifier: BSD-2-Clause
"""Say why a running container of Docker may have fewer tasks of its own than a policy asks.

Nothing of dockerd or daemon.json bounds the tasks of all containers: moby issue 43056.
"""

from __future__ import annotations

from ..core.cause import Cause
from ..core.remedy import Remedy
from ..core.rlimit import UNLIMITED, format_quantity
from .compose import blame_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.tasks import Bounds
    from ..core.finding import Requirement
    from .running import Running

CODES = {
    "docker-own-pids-limit": "the container was created with --pids-limit, which bounds its tasks",
    "docker-pids-changed": "the container's cgroup has another bound than the container was given",
}


def find_tasks_causes(wanted: Requirement, bounds: Bounds, running: Running) -> list[Cause]:
    """Return why a container's own bound is too low; nothing where it is not, or systemd has it."""
    least, own, stated = wanted.minimum or 0, bounds.own, running.tasks
    if own is None or own.most >= least:
        return []
    number = -1 if least >= UNLIMITED else least
    update = ("docker", "update", f"--pids-limit={number}", running.name)
    if stated is not None and stated < least:
        if running.compose:
            return [blame_tasks(running.compose, running.name, stated, number)]
        text = f"{running.name} was created with --pids-limit={stated}"
        remedy = Remedy("raise it, for its next starts too", (update,))
        return [Cause("docker-own-pids-limit", text, remedy)]
    if stated is None and bounds.scope:
        return []
    has = format_quantity(own.most)
    given = "no bound" if stated in (None, UNLIMITED) else str(stated)
    text = f"{running.name} was given {given}, and {own.path} has {has}: something changed it"
    remedy = Remedy("state it, for its next starts too", (update,))
    return [Cause("docker-pids-changed", text, remedy)]
