# SPDX-License-Identifier: BSD-2-Clause
"""Read the parts of a policy that say what containers of Podman and of containerd get."""

from __future__ import annotations

import re
from typing import NamedTuple

from .policy_keys import CONTAINERD, DOCKER, PODMAN
from .policy_reader import Limit, read_limits, read_mapping, read_quantity
from .rlimit import UNLIMITED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SHM = "shm_size"
"""The item of a requirement on the size of a container's /dev/shm."""

CONTAINER_ITEMS = DOCKER["limits"].accepted
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")


class PodmanPolicy(NamedTuple):
    """What a new container of Podman gets; ``shm_size`` in bytes.

    ``users`` are those whose own, rootless containers a check looks at too.
    """

    limits: Mapping[str, Limit]
    shm_size: int | None = None
    users: tuple[str, ...] = ()


class ContainerdPolicy(NamedTuple):
    """What containers inherit from containerd: those of Kubernetes, of ctr and of nerdctl."""

    limits: Mapping[str, Limit]


def read_podman(raw: object, problems: list[str]) -> PodmanPolicy | None:
    """Return what a policy says of Podman; nothing where it asks for nothing."""
    path = "containers.podman"
    section = read_mapping(path, raw, PODMAN, problems)
    limits = read_container_limits(path, section.get("limits", {}), "Podman", problems)
    shm_size = None
    if "shm_size" in section:
        shm_size = read_quantity(f"{path}.shm_size", section["shm_size"], "bytes", problems)
    if shm_size in (0, UNLIMITED):
        problems.append(f"{path}.shm_size: a size above 0 is accepted")
    users = _read_users(f"{path}.users", section.get("users", []), problems)
    if users and not limits and not shm_size:
        problems.append(f"{path}.users: without limits and shm_size nothing is asked for them")
    return PodmanPolicy(limits, shm_size, users) if limits or shm_size else None


def _read_users(path: str, raw: object, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(raw, list):
        problems.append(f"{path}: {raw!r} was given; a list of users is accepted")
        return ()
    for user in raw:
        if not isinstance(user, str) or not _USER.fullmatch(user) or user == "root":
            problems.append(f"{path}: {user!r} is no user's name; root needs none")
    return tuple(str(user) for user in raw)


def read_containerd(raw: object, problems: list[str]) -> ContainerdPolicy | None:
    """Return what a policy says of containerd; nothing where it asks for nothing."""
    path = "containers.containerd"
    section = read_mapping(path, raw, CONTAINERD, problems)
    limits = read_container_limits(path, section.get("limits", {}), "a unit", problems)
    return ContainerdPolicy(limits) if limits else None


def read_container_limits(
    path: str, raw: object, engine: str, problems: list[str]
) -> dict[str, Limit]:
    """Return limits of which each has both bounds, and a number of files."""
    limits = read_limits(f"{path}.limits", raw, CONTAINER_ITEMS, problems)
    for name, limit in limits.items():
        if (limit.soft is None) != (limit.hard is None):
            problems.append(f"{path}.limits.{name}: {engine} needs soft and hard, or one value")
    if limits.get("nofile", Limit()).hard == UNLIMITED:
        problems.append(
            f"{path}.limits.nofile: 'unlimited' lets no container start; a number is accepted"
        )
    return limits
