# SPDX-License-Identifier: BSD-2-Clause
"""One look at one host: what is read of it is read once; and what the kernel tells of processes."""

from __future__ import annotations

import copy
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from ..core.values import NamedTuple, Rlimit, parse_proc_limits
from .booted import is_chroot
from .door import list_pids, read_kernel_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    Promise = tuple[int, str]
    """A number of descriptors, and where it stands."""

Reader = TypeVar("Reader")


class Look:
    """One look at one host, which hands the same readers to all who ask."""

    def __init__(
        self,
        promise: Callable[[Look], Iterable[Promise]] | None = None,
        processes: Iterable[Process] | None = None,
        limits_by_pid: Mapping[int, Mapping[str, Rlimit]] | None = None,
    ) -> None:
        """Begin with what is known already.

        :param promise: Yields each nofile that somebody's files state.
        :param processes: With ``limits_by_pid``, what was read of them.
        """
        self._made: dict[type[Any], Any] = {}
        self._promise = promise
        self.limits_by_pid = limits_by_pid or {}
        if processes is not None:
            self.processes = tuple(processes)

    def at(self, reader: type[Reader]) -> Reader:
        """Return the reader of a class, which is made when it is first asked for, and kept."""
        if reader not in self._made:
            self._made[reader] = reader()
        made: Reader = self._made[reader]
        return made

    def seen_by(self, reader: type[Reader], made: Reader) -> Look:
        """Return the same look with another reader for those of its class."""
        look = copy.copy(self)
        look._made = {**self._made, reader: made}
        return look

    def list_promises(self) -> list[Promise]:
        """Return each nofile that somebody's files state: fs.nr_open must not fall below it."""
        return list(self._promise(self)) if self._promise else []

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        return tuple(find_processes())

    def find_change(self, path: str) -> str:
        """Return when a file was last changed, as an ISO time, or nothing."""
        try:
            return format_time(os.stat(path).st_mtime)
        except OSError:
            return ""


def format_time(seconds: float) -> str:
    """Return a time as people and programs read it, in the host's own zone."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))


_IPC_LOCK, _SYS_RESOURCE = 14, 24  # Of linux/capability.h.
_EVERYONE = ["0", "0", "4294967295"]


def may_lock_memory(pid: int, proc: str = "/proc") -> bool:
    """Tell whether a process has CAP_IPC_LOCK, so that memlock does not bind it."""
    return _has(_IPC_LOCK, str(pid), proc)


def may_raise(pid: int, proc: str = "/proc") -> bool:
    """Tell whether a process has CAP_SYS_RESOURCE, so that it may give more than it has."""
    return _has(_SYS_RESOURCE, str(pid), proc)


@lru_cache(maxsize=None)
def may_raise_limits(proc: str = "/proc") -> bool:
    """Tell whether sessions that this process opens may raise hard limits.

    Whoever is not root opens none, and those that others open are root's. In a user namespace
    of its own a process may not, whatever capabilities it has there (``do_prlimit()``).
    """
    if os.geteuid() != 0:
        return True
    try:
        own = read_kernel_text(f"{proc}/self/uid_map").split() != _EVERYONE
    except OSError:
        own = False
    return not own and _has(_SYS_RESOURCE, "self", proc)


def _has(capability: int, pid: str, proc: str) -> bool:
    try:
        text = read_kernel_text(f"{proc}/{pid}/status")
        found = re.search(r"^CapEff:\s*([0-9a-f]+)", text, re.MULTILINE)
    except OSError:
        return False
    return bool(found and int(found[1], 16) >> capability & 1)


_MANAGER = r"^[^@]*/user@([0-9]+)\.service/init\.scope$"


def find_user_managers(processes: Iterable[Process]) -> dict[int, Process]:
    """Return the service managers of users that run, by uid.

    A user may make cgroups below the own manager, of any name, and call a process as they like.
    """
    found: dict[int, Process] = {}
    for process in processes:
        match = re.search(_MANAGER, process.cgroup, re.MULTILINE)
        if match and process.comm == "systemd" and process.uid == int(match[1]):
            found.setdefault(process.uid, process)
    return found


class Process(NamedTuple):
    """What tells one process from another. ``start`` is in clock ticks since boot."""

    pid: int
    comm: str
    uid: int
    cgroup: str
    start: int


def read_limits(pid: int | str, proc: str = "/proc") -> dict[str, Rlimit]:
    """Return the limits of one process, by limits.conf name, in the kernel's unit.

    :param pid: A process id, or ``self``.
    :raises OSError: If the process is gone.
    """
    return parse_proc_limits(read_kernel_text(f"{proc}/{pid}/limits"))


def read_process(pid: int, proc: str = "/proc") -> Process:
    """Return the identity of one process.

    :raises OSError: If the process is gone.
    """
    comm, rest = read_kernel_text(f"{proc}/{pid}/stat").partition("(")[2].rpartition(")")[::2]
    cgroup = read_kernel_text(f"{proc}/{pid}/cgroup").strip()
    uid = os.stat(f"{proc}/{pid}").st_uid
    return Process(pid, comm, uid, cgroup, int(rest.split()[19]))


def read_parent(pid: int, proc: str = "/proc") -> int:
    """Return the parent of a process.

    :raises OSError: If the process is gone.
    """
    return int(read_kernel_text(f"{proc}/{pid}/stat").rpartition(")")[2].split()[1])


def find_processes(proc: str = "/proc") -> Iterator[Process]:
    """Yield every process that still exists when it is read, kernel threads included.

    In an image there are none of its own: they are of the machine that builds it.
    """
    if proc == "/proc" and is_chroot():
        return
    for pid in list_pids(proc):
        try:
            yield read_process(pid, proc)
        except OSError:
            continue  # It ended between the listing and the look.


def read_unit_pids(
    unit: str, slice_: str = "system.slice", root: str = "/sys/fs/cgroup"
) -> list[int]:
    """Return the processes of a systemd service from its cgroup, lowest first.

    Works on cgroup v2 and on v1, where systemd keeps its own hierarchy under ``systemd``.

    :returns: An empty list where the unit does not run.
    """
    if root == "/sys/fs/cgroup" and is_chroot():
        return []
    for base in (root, f"{root}/systemd", f"{root}/unified"):
        try:
            return sorted(
                map(int, read_kernel_text(f"{base}/{slice_}/{unit}/cgroup.procs").split())
            )
        except OSError:
            continue
    return []


def started_before(process: Process, path: str, proc: str = "/proc") -> bool:
    """Tell whether a process started before a file was last changed; no file, no change."""
    try:
        changed = os.stat(path).st_mtime
    except OSError:
        return False
    return read_start_time(process, proc) < changed


def read_start_time(process: Process, proc: str = "/proc") -> float:
    """Return when a process started, in seconds since the epoch."""
    uptime = float(read_kernel_text(f"{proc}/uptime").split()[0])
    return time.time() - uptime + process.start / os.sysconf("SC_CLK_TCK")
