# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of what containers inherit from containerd: of Kubernetes, ctr and nerdctl."""

from __future__ import annotations

from ..containers.policy import CONTAINER_ITEMS, TASKS, TASKS_KEY, ContainerPolicy, read_containers
from ..core.reader import Key

KEYS = {
    "limits": Key("limits", "what pods and `ctr` containers inherit", CONTAINER_ITEMS),
    TASKS: TASKS_KEY,
}
"""No file of containerd's states a ``shm_size``."""


def read_containerd(raw: object, problems: list[str]) -> ContainerPolicy | None:
    """Return what a policy says of containerd; nothing where it asks for nothing."""
    policy = read_containers("containers.containerd", raw, KEYS, "a unit", problems)
    return policy if any(policy) else None
