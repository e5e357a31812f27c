# SPDX-License-Identifier: BSD-2-Clause
"""Find the containers that run on a host, of any engine, by their monitors and their cgroups."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ..core.process_owner import MAKER
from ..core.values import NamedTuple
from ..host.daemons import is_daemon
from ..host.door import read_kernel_file
from ..host.look import Process, read_parent, read_process
from ..host.users import find_owner, name_user
from .cgroup import Container, Monitor, locate, read_monitor

_MONITORS = ("conmon", "containerd-shim")  # The kernel keeps 15 bytes of a name.


class RunningContainer(NamedTuple):
    """A container and its first process; ``owner`` is the uid of whoever started it."""

    container: Container
    process: Process
    owner: int


def find_running(
    processes: Iterable[Process], engines: Sequence[str], proc: str = "/proc"
) -> list[RunningContainer]:
    """Return the containers that monitors of this host watch, each by its first process.

    :param processes: All that run on this host.
    :param engines: Which made them.
    """
    processes = list(processes)
    monitors = {one.pid: one for one in processes if _is_monitor(one)}
    found: dict[tuple[str, str, int], RunningContainer] = {}
    for process in sorted(processes, key=lambda one: one.start) if monitors else ():
        monitor = monitors.get(_find_parent(process.pid, proc))
        if monitor is None or process.pid in monitors:
            continue
        container = locate(process.cgroup, [read_words(monitor.pid, proc)])
        if container and container.engine in engines:
            # A command that enters a container later has a monitor too, and is no first process.
            # A user's own monitor says what it likes, and hides nothing that another watches.
            key = (container.engine, container.id, monitor.uid)
            found.setdefault(key, RunningContainer(container, process, monitor.uid))
    return list(found.values())


def find_place(process: Process, ancestors: Iterable[Process], proc: str = "/proc") -> str:
    """Return the name of the container that a process lives in; nothing on the host itself."""
    monitors = (one for one in ancestors if _is_monitor(one) and one.uid in (0, process.uid))
    container = locate(process.cgroup, [read_words(one.pid, proc) for one in monitors])
    return container.name if container else ""


def _is_monitor(process: Process) -> bool:
    """Tell whether a process watches a container; a user's own is that user's word."""
    named = process.comm in _MONITORS
    return named and (process.uid != 0 or is_daemon(process.pid, process.comm))


def read_words(pid: int, proc: str = "/proc") -> list[str]:
    """Return the command line of a process; nothing where it is gone."""
    try:
        return os.fsdecode(read_kernel_file(f"{proc}/{pid}/cmdline")).rstrip("\0").split("\0")
    except OSError:
        return []


def find_monitor(pid: int) -> Monitor | None:
    """Return what the monitor of a container's first process says of it; nothing without one."""
    return read_monitor(read_words(_find_parent(pid, "/proc")))


def _find_parent(pid: int, proc: str) -> int:
    try:
        return read_parent(pid, proc)
    except (OSError, ValueError, IndexError):
        return 0


def find_maker(container: RunningContainer) -> str:
    """Return the user whose monitor watches a container; nothing where root's does.

    A user may give any name to the own programs, and to those with the set-user-ID bit.
    """
    if container.owner:
        return name_user(container.owner)
    try:
        return find_owner(read_process(read_parent(container.process.pid)))
    except (OSError, ValueError, IndexError):
        return MAKER  # It has ended, and nobody can tell.
