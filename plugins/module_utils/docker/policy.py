# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of containers of Docker."""

from __future__ import annotations

from ..containers.policy import KEYS, ContainerPolicy, read_containers

__all__ = ("KEYS", "read_docker")


def read_docker(raw: object, problems: list[str]) -> ContainerPolicy | None:
    """Return what a policy says of Docker; nothing where it asks for nothing."""
    policy = read_containers("containers.docker", raw, KEYS, "Docker", problems)
    return policy if any(policy) else None
