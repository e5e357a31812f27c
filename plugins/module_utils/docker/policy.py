# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of containers of Docker."""

from __future__ import annotations

from collections.abc import Mapping

from ..containers.policy import (
    CONTAINER_ITEMS,
    SHM,
    SHM_KEY,
    TASKS,
    TASKS_KEY,
    read_container_limits,
    read_shm_size,
    read_tasks,
)
from ..core.keys import Key
from ..core.named import NamedTuple
from ..core.reader import Limit, read_mapping

KEYS = {
    "limits": Key("limits", "what a container has that states nothing", CONTAINER_ITEMS),
    SHM: SHM_KEY,
    TASKS: TASKS_KEY,
}


class DockerPolicy(NamedTuple):
    """What a container gets; ``shm_size`` in bytes. No file of Docker's states ``tasks``."""

    limits: Mapping[str, Limit]
    shm_size: int | None
    tasks: int | None = None


def read_docker(raw: object, problems: list[str]) -> DockerPolicy | None:
    """Return what a policy says of Docker; nothing where it asks for nothing."""
    path = "containers.docker"
    docker = read_mapping(path, raw, KEYS, problems)
    limits = read_container_limits(path, docker.get("limits", {}), "Docker", problems)
    shm_size = read_shm_size(path, docker, problems)
    policy = DockerPolicy(limits, shm_size, read_tasks(path, docker, problems))
    return policy if any(policy) else None
