# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of the containers of CRI-O."""

from __future__ import annotations

from ..containers.policy import CONTAINER_ITEMS, TASKS, TASKS_KEY, ContainerPolicy, read_containers
from ..core.reader import Key

KEYS = {
    "limits": Key("limits", "what containers of pods have", CONTAINER_ITEMS),
    TASKS: TASKS_KEY,
}
"""A pod's /dev/shm is the kubelet's and the pod's own."""


def read_crio(raw: object, problems: list[str]) -> ContainerPolicy | None:
    """Return what a policy says of CRI-O; nothing where it asks for nothing."""
    policy = read_containers("containers.crio", raw, KEYS, "CRI-O", problems)
    return policy if any(policy) else None
