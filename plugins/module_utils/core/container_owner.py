# SPDX-License-Identifier: BSD-2-Clause
"""Say whose doing the shortfall of a container is: root's, its maker's, or a user's."""

from __future__ import annotations

from .finding import FAIL, Finding
from .process_owner import MAKER

_OF_MAKER = {
    "containerd-changed-inside",
    "containerd-container-older",
    "containerd-own-spec",
    "docker-changed-inside",
    "docker-container-older",
    "docker-own-pids-limit",
    "docker-own-ulimit",
    "docker-pids-changed",
    "docker-shm-fixed",
    "docker-shm-mounted",
    "docker-shm-shared",
    "podman-changed-inside",
    "podman-container-created",
}
"""Causes that lie in a container that runs, and not in what the engine would give a new one."""


def own_running(finding: Finding, user: str = "") -> Finding:
    """Return the finding of a running container with whose doing it is.

    What runs in a container may lower its limits, and whoever makes it may state others. It is
    root's where the engine of root would give a new one too little as well.

    :param user: Whose engine runs it, empty for root's.
    """
    if finding.status != FAIL:
        return finding
    others = any(cause.code not in _OF_MAKER for cause in finding.causes)
    return finding._replace(owner=user or ("" if others else MAKER))
