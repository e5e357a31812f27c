# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of what containers inherit from containerd."""

from __future__ import annotations

from collections.abc import Mapping

from ..containers.policy import CONTAINER_ITEMS, TASKS, TASKS_KEY, read_container_limits, read_tasks
from ..core.keys import Key
from ..core.named import NamedTuple
from ..core.reader import Limit, read_mapping

KEYS = {
    "limits": Key("limits", "what pods and `ctr` containers inherit", CONTAINER_ITEMS),
    TASKS: TASKS_KEY,
}


class ContainerdPolicy(NamedTuple):
    """What containers inherit from containerd: those of Kubernetes, of ctr and of nerdctl.

    No file of containerd's states a ``shm_size``.
    """

    limits: Mapping[str, Limit]
    tasks: int | None = None
    shm_size: int | None = None


def read_containerd(raw: object, problems: list[str]) -> ContainerdPolicy | None:
    """Return what a policy says of containerd; nothing where it asks for nothing."""
    path = "containers.containerd"
    section = read_mapping(path, raw, KEYS, problems)
    limits = read_container_limits(path, section.get("limits", {}), "a unit", problems)
    policy = ContainerdPolicy(limits, read_tasks(path, section, problems))
    return policy if any(policy) else None
