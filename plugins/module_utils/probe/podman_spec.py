# SPDX-License-Identifier: BSD-2-Clause
"""Read what a container of Podman was created with, from the specification that crun was given."""

from __future__ import annotations

import json
import os

from ..policy.container_cgroup import read_monitor
from ..policy.podman_running import Created
from ..policy.rlimit import RLIMITS, Rlimit
from .evidence import format_time
from .files import read_bytes
from .process import read_parent
from .running_containers import read_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .running_containers import RunningContainer


def read_created(one: RunningContainer) -> Created:
    """Return what is known of how a container was created."""
    pid = one.process.pid
    try:
        monitor = read_monitor(read_words(read_parent(pid)))
        path = f"{monitor.bundle if monitor else ''}/config.json"
        content = json.loads(read_bytes(path) or b"")
        entries = content["process"].get("rlimits") or ()
        names = {f"RLIMIT_{name.upper()}": name for name in RLIMITS}
        limits = {
            names[entry["type"]]: Rlimit(int(entry["soft"]), int(entry["hard"]))
            for entry in entries
            if entry["type"] in names
        }
        since = format_time(os.stat(path).st_mtime)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return Created(one.container.name.partition("/")[2])
    return Created(one.container.name.partition("/")[2], limits, since)
