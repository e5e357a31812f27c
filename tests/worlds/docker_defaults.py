# SPDX-License-Identifier: GPL-3.0-or-later
"""The defaults that daemon.json and flags of dockerd state, as dockerd counts them."""

from __future__ import annotations

from collections.abc import Iterable

from mlhost_limits.docker.daemon_json import DockerDefaults, StatedDefault


def collect_defaults(stated: Iterable[StatedDefault]) -> DockerDefaults:
    """Return the values alone; of two statements about one thing the last."""
    limits = {default.name: default.limit for default in stated}
    size = limits.pop("shm_size", None)
    return DockerDefaults(limits, size.hard if size else None)
