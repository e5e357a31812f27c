# SPDX-License-Identifier: BSD-2-Clause
"""Say as a policy what a run needed where it lived, so that check finds the line at fault."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.cause import Remedy
from ..core.values import RLIMITS, UNLIMITED
from ..training.causes import Room, raise_memory
from .reasons import CGROUP, REASONS

MEMORY = REASONS[CGROUP].item
_GIB = 2**30
_ENDLESS = ("as", "data", "fsize", "cpu", "memlock", "rss", "locks")
"""Limits for which no number is more right than none."""

_LEAST = {
    "nofile": 65536,
    "nproc": 65536,
    "tasks": 65536,
    "stack": 64 * 2**20,
    "msgqueue": 8 * 2**20,
    "shm_size": 8 * _GIB,
    "fs.inotify.max_user_instances": 1024,
    "fs.inotify.max_user_watches": 1048576,
    "vm.max_map_count": 262144,
    "fs.file-max": 2097152,
    "kernel.keys.maxkeys": 2000,
    "user.max_user_namespaces": 16384,
    "kernel.threads-max": 262144,
    "kernel.shmmni": 8192,
}
_SECTIONS = {
    "docker": ("containers", "docker"),
    "podman": ("containers", "podman"),
    "slurm": ("jobs", "slurm"),
}


def ask_enough(
    item: str, kind: str, name: str, has: int | None, needed: int | None
) -> dict[str, object]:
    """Return a policy that asks for enough of one item in one place; nothing where none can.

    :param kind: The place, as ``where_read`` has it: ``unit``, ``session``, ``container``, ``job``.
    :param has: What there is now, where that is known: twice as much may be enough.
    :param needed: What the message says that it takes.
    """
    enough: int | str = find_enough(item, has, needed)
    enough = "unlimited" if enough == UNLIMITED else enough
    if "." in item and item != "memory.max":
        return {"kernel": {item: enough}} if enough != "unlimited" else {}
    if item == "remove_ipc":
        return {"services": {"logind": {"remove_ipc": False}}}
    if item in ("tasks", "shm_size"):
        return _ask_value(item, kind, name, enough)
    if item in RLIMITS:
        return _ask_limit(item, kind, name, enough)
    return {}


def find_enough(item: str, has: int | None, needed: int | None) -> int:
    """Return how much is asked for: what it takes, or else twice what there is and never little."""
    if needed:
        return needed
    if item in _ENDLESS:
        return UNLIMITED
    doubled = 2 * has if has is not None and has < UNLIMITED // 2 else 0
    return max(doubled, _LEAST.get(item, 0)) or UNLIMITED


def _ask_value(item: str, kind: str, name: str, enough: int | str) -> dict[str, object]:
    if kind == "container" and name in ("docker", "podman"):
        return {"containers": {name: {item: enough}}}
    if kind == "unit" and item == "tasks":
        return {"services": {"units": {name: {"tasks": enough}}}}
    if item == "shm_size":
        return {"shared_memory": {"size": enough}}
    return {}


def _ask_limit(item: str, kind: str, name: str, enough: int | str) -> dict[str, object]:
    if kind == "unit":
        limits: Mapping[str, object] = {item: {"soft": enough}}
        return {"services": {"units": {name: {"limits": limits}}}}
    if name in _SECTIONS:
        above, below = _SECTIONS[name]
        return {above: {below: {"limits": {item: enough}}}}
    if kind == "session":
        return {"sessions": [{"users": [name], "limits": {item: {"soft": enough}}}]}
    return {}


def raise_group(kind: str, home: str, limit: str) -> Remedy:
    """Return how a cgroup gets twice the memory, by who made it.

    :param home: What the cgroup is called: a unit, or the id of a container; empty if unknown.
    :param limit: Its limit in bytes; no number where it is another's above it.
    """
    text = REASONS[CGROUP].way
    if kind == "job":
        return Remedy(f"{text}; a job asks Slurm for it with --mem")
    paths = {"unit": f"/system.slice/{home}", "container": f"/docker/{home}"}
    size = int(limit) if limit.isdigit() else 0
    if kind not in paths or not size:
        return Remedy(text)
    return raise_memory(text, size, Room(paths[kind], 0, size, size))
