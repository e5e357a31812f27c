# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of containers of Podman."""

from __future__ import annotations

import re

from ..containers.policy import KEYS as CONTAINER_KEYS
from ..containers.policy import ContainerPolicy, read_containers
from ..core.reader import Key

KEYS = {**CONTAINER_KEYS, "users": Key("users", "whose rootless containers are checked too")}
_PATH = "containers.podman"
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")


def read_podman(raw: object, problems: list[str]) -> ContainerPolicy | None:
    """Return what a policy says of Podman; nothing where it asks for nothing."""
    policy = read_containers(_PATH, raw, KEYS, "Podman", problems)
    stated = raw.get("users", []) if isinstance(raw, dict) else []
    users = _read_users(f"{_PATH}.users", stated, problems)
    if any(policy):
        return policy._replace(users=users)
    if users:
        problem = "without limits, shm_size and tasks nothing is asked of them"
        problems.append(f"{_PATH}.users: {problem}")
    return None


def _read_users(path: str, raw: object, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(raw, list):
        problems.append(f"{path}: {raw!r} was given; a list of users is accepted")
        return ()
    for user in raw:
        if not isinstance(user, str) or not _USER.fullmatch(user) or user == "root":
            problems.append(f"{path}: {user!r} is not a user's name; root needs none")
    return tuple(str(user) for user in raw)
