# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of containers of Podman."""

from __future__ import annotations

import re
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
    "users": Key("users", "whose rootless containers are checked too"),
}
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")


class PodmanPolicy(NamedTuple):
    """What a new container of Podman gets; ``shm_size`` in bytes.

    ``users`` are those whose own, rootless containers a check looks at too.
    """

    limits: Mapping[str, Limit]
    shm_size: int | None = None
    users: tuple[str, ...] = ()
    tasks: int | None = None


def read_podman(raw: object, problems: list[str]) -> PodmanPolicy | None:
    """Return what a policy says of Podman; nothing where it asks for nothing."""
    path = "containers.podman"
    section = read_mapping(path, raw, KEYS, problems)
    limits = read_container_limits(path, section.get("limits", {}), "Podman", problems)
    shm_size = read_shm_size(path, section, problems)
    tasks = read_tasks(path, section, problems)
    users = _read_users(f"{path}.users", section.get("users", []), problems)
    asked = limits or shm_size or tasks
    if users and not asked:
        problems.append(
            f"{path}.users: without limits, shm_size and tasks nothing is asked of them"
        )
    return PodmanPolicy(limits, shm_size, users, tasks) if asked else None


def _read_users(path: str, raw: object, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(raw, list):
        problems.append(f"{path}: {raw!r} was given; a list of users is accepted")
        return ()
    for user in raw:
        if not isinstance(user, str) or not _USER.fullmatch(user) or user == "root":
            problems.append(f"{path}: {user!r} is no user's name; root needs none")
    return tuple(str(user) for user in raw)
