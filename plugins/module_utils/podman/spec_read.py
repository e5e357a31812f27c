# SPDX-License-Identifier: BSD-2-Clause
"""Read what a container of Podman was created with, from the specification that crun was given."""

from __future__ import annotations

import json
import os
from functools import partial

from ..containers.cgroup import read_monitor
from ..containers.read import RunningContainer, read_words
from ..containers.tasks import read_spec_tasks
from ..core.rlimit import RLIMITS, Rlimit
from ..host.files import read_bytes
from ..host.look import format_time
from ..host.owned import ask_owner
from ..host.process import read_parent
from .running import Created


def read_created(one: RunningContainer) -> Created:
    """Return what is known of how a container was created."""
    try:
        monitor = read_monitor(read_words(read_parent(one.process.pid)))
        path = f"{monitor.bundle if monitor else ''}/config.json"
        read = partial(_read, path)
        text, changed = ask_owner(one.owner, read) if one.owner else read()
        spec = json.loads(text)
        entries = spec["process"].get("rlimits") or ()
        names = {f"RLIMIT_{name.upper()}": name for name in RLIMITS}
        limits = {
            names[entry["type"]]: Rlimit(int(entry["soft"]), int(entry["hard"]))
            for entry in entries
            if entry["type"] in names
        }
        since = format_time(float(changed))
        tasks = read_spec_tasks(spec)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return Created(one.container.name.partition("/")[2])
    return Created(one.container.name.partition("/")[2], limits, since, tasks)


def _read(path: str) -> tuple[str, float]:
    """Return a file and when it was last changed, in seconds since the epoch."""
    return (read_bytes(path) or b"").decode("utf-8"), os.stat(path).st_mtime
