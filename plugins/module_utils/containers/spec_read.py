# SPDX-License-Identifier: BSD-2-Clause
"""Read how a container was started, from the specification that its runtime was given."""

from __future__ import annotations

import os
from functools import partial

from ..host.files import read_text
from ..host.look import format_time
from ..host.owned import ask_owner
from .cgroup import Container
from .spec import Started, read_spec


def read_started(container: Container, path: str, owner: int = 0) -> Started:
    """Return what is known of how a running container was started.

    :param path: The config.json that is its specification.
    :param owner: Whose that is: that user reads it.
    """
    name, in_pod = container.name.partition("/")[2], bool(container.pod)
    read = partial(_read, path)
    try:
        text, changed = ask_owner(owner, read) if owner else read()
        spec, since = read_spec(text), format_time(float(changed))
    except (OSError, ValueError, TypeError):
        return Started(name, in_pod=in_pod)
    return Started(name, spec.limits, since, spec.tasks, in_pod)


def _read(path: str) -> tuple[str, float]:
    """Return a file and when it was last changed, in seconds since the epoch."""
    return read_text(path) or "", os.stat(path).st_mtime
