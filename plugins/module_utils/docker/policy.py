# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of containers of Docker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..containers.policy import CONTAINER_ITEMS, TASKS, TASKS_KEY, read_container_limits, read_tasks
from ..core.keys import Key
from ..core.reader import Limit, read_mapping, read_quantity
from ..core.rlimit import UNLIMITED

KEYS = {
    "limits": Key("limits", "what a container has that states nothing", CONTAINER_ITEMS),
    "shm_size": Key("size above 0", "the size of its /dev/shm"),
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
    shm_size = None
    if "shm_size" in docker:
        shm_size = read_quantity(f"{path}.shm_size", docker["shm_size"], "bytes", problems)
    if shm_size in (0, UNLIMITED):
        problems.append(f"{path}.shm_size: a size above 0 is accepted")
    policy = DockerPolicy(limits, shm_size, read_tasks(path, docker, problems))
    return policy if any(policy) else None
