# SPDX-License-Identifier: BSD-2-Clause
"""Say as a policy what a run needed where it lived, so that check finds the line at fault."""

from __future__ import annotations

from ..core.cause import Remedy
from ..core.values import RLIMITS, UNLIMITED
from ..training.causes import Room, raise_memory
from .reasons import CGROUP, REASONS

MEMORY = REASONS[CGROUP].item
_GIB = 2**30
_MOST_DOUBLED = 2**61
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
    "kernel.pid_max": 262144,
    "kernel.shmmni": 8192,
    "kernel.msgmni": 32000,
    "net.netfilter.nf_conntrack_max": 1048576,
    "kernel.pty.max": 8192,
    "net.core.somaxconn": 4096,
}
_QUANTITIES = {
    "fs.file-max": 2**62,
    "fs.inotify.max_user_instances": 2**31 - 1,
    "fs.inotify.max_user_watches": 2**31 - 1,
    "fs.epoll.max_user_watches": 2**62,
    "vm.max_map_count": 2**31 - 1,
    "kernel.keys.maxkeys": 2**31 - 1,
    "kernel.threads-max": 2**29,
    "kernel.pid_max": 2**22,
    "kernel.shmmni": 2**15,
    "kernel.msgmni": 2**15,
    "net.netfilter.nf_conntrack_max": 2**31 - 1,
    "kernel.pty.max": 2**20,
    "net.core.somaxconn": 2**31 - 1,
    "user.max_user_namespaces": 2**31 - 1,
}
"""Sysctls of which more is more, and the most that the kernel takes: others are modes, or have
several fields."""

_NOT_OF_SLURM = ("fsize", "cpu")  # They would end slurmd itself.
_LETTERS = {
    "nofile": "n",
    "nproc": "u",
    "memlock": "l",
    "stack": "s",
    "as": "v",
    "data": "d",
    "fsize": "f",
    "cpu": "t",
    "msgqueue": "q",
}
_WAYS = {
    "kernel.sem": "ipcs -s lists semaphores, and ipcrm removes what ended runs left; kernel.sem has"
    " four fields, of which the second and the fourth bound how many there are",
    "shm_size": "where it ran: mount -o remount,size=SIZE /dev/shm, or the engine's --shm-size",
    "tasks": "systemd-cgls and pids.events name the cgroup; systemctl set-property UNIT TasksMax=N",
    "maxlogins": "raise maxlogins in /etc/security/limits.conf, or end sessions that are left over",
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
    if "." in item:
        return _ask_sysctl(item, has, enough)
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
    doubled = 2 * has if has is not None and has < _MOST_DOUBLED else 0
    return max(doubled, _LEAST.get(item, 0)) or UNLIMITED


def _ask_sysctl(item: str, has: int | None, enough: int | str) -> dict[str, object]:
    most = _QUANTITIES.get(item)
    if most is None or not isinstance(enough, int) or (has is not None and has >= most):
        return {}
    return {"kernel": {item: min(enough, most)}}


def _ask_value(item: str, kind: str, name: str, enough: int | str) -> dict[str, object]:
    if kind == "container" and name in ("docker", "podman"):
        return {"containers": {name: {item: enough}}}
    if kind == "unit" and item == "tasks":
        return _ask_unit(name, item, enough)
    if item == "shm_size":
        return {"shared_memory": {"size": enough}}
    return {}


def _ask_limit(item: str, kind: str, name: str, enough: int | str) -> dict[str, object]:
    if kind == "unit":
        return _ask_unit(name, item, enough)
    if (kind == "container" and item == "as") or (kind == "job" and item in _NOT_OF_SLURM):
        return {}
    if name in _SECTIONS and kind != "session":
        above, below = _SECTIONS[name]
        return {above: {below: {"limits": {item: enough}}}}
    if kind == "session":
        return {"sessions": [{"users": [name], "limits": {item: {"soft": enough}}}]}
    return {}


def _ask_unit(name: str, item: str, enough: int | str) -> dict[str, object]:
    if name.endswith((".scope", ".slice")):
        return {}  # They start no processes of their own.
    return {"services": {"units": {name: {item: enough}}}}


def name_way(item: str, kind: str) -> str:
    """Return what helps wherever a run lived, where check finds no line at fault.

    :param kind: The place, as ``ask_enough`` has it.
    """
    if item not in _LETTERS:
        return _WAYS.get(item, "")
    if kind == "container":
        return f"start the container with --ulimit {item}=SOFT:HARD"
    letter = _LETTERS[item]
    return (
        f"ulimit -S{letter} in the shell or script that starts it, up to what ulimit -H{letter}"
        " shows; more than that is set where the session, unit, job or container is started"
    )


def raise_group(kind: str, path: str, limit: int | None) -> Remedy:
    """Return how a cgroup gets twice the memory, by who made it.

    :param path: The cgroup whose limit was reached; empty if unknown.
    :param limit: Its limit in bytes; ``None`` if unknown.
    """
    text = REASONS[CGROUP].way
    if kind == "job":
        return Remedy(f"{text}; a job asks Slurm for it with --mem")
    if not path:
        return Remedy(text)
    text = text if kind == "container" else f"{text}; the cgroup is {path}"
    if not limit or "/user@" in path.rpartition("/")[0]:
        return Remedy(text)  # Below a user's manager, whose units the system's does not know.
    return raise_memory(text, limit, Room(path, 0, limit, limit))
