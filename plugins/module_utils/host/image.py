# SPDX-License-Identifier: BSD-2-Clause
"""Tell a host that runs from an image that is being built, and look at the files of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from .booted import is_booted, is_chroot
from .daemons import is_daemon, read_comm
from .door import list_pids
from .files import under

Reader = TypeVar("Reader")


class Tree:
    """One look at one tree, which hands the same readers to all who ask."""

    def __init__(self, root: str) -> None:
        """:raises NotADirectoryError: If there is no such folder."""
        if not os.path.isdir(root):
            raise NotADirectoryError(f"{root}: is not a directory")
        self.root = os.path.abspath(root)
        self._made: dict[Any, Any] = {}

    def at(self, reader: Callable[[str], Reader]) -> Reader:
        """Return the reader of a class, made with the root when it is first asked for, and kept."""
        if reader not in self._made:
            self._made[reader] = reader(self.root)
        made: Reader = self._made[reader]
        return made

    def lacks(self, folder: str) -> bool:
        """Tell whether the tree has no such folder."""
        return not os.path.isdir(under(folder, self.root))

    def has(self, *paths: str) -> bool:
        """Tell whether the tree has one of these files."""
        return any(os.path.exists(under(path, self.root)) for path in paths)


_FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of linux/proc_ns.h.
_SERVERS = ("sshd", "slurmd")  # What opens sessions in a container without systemd.
_INITS = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd", "/usr/sbin/init", "/sbin/init")


def is_image() -> bool:
    """Tell whether this is the tree of a host to come, or the container that one is built in.

    A container that somebody logs in to, or that jobs are sent to, is a host.
    """
    return is_chroot() or (not is_booted() and _is_container() and not _serves_sessions())


def will_boot(root: str = "/") -> bool:
    """Tell whether a tree has a program that starts a host."""
    return any(os.path.lexists(root.rstrip("/") + path) for path in _INITS)


def _is_container() -> bool:
    try:
        return os.readlink("/proc/self/ns/pid") != _FIRST_PID_NAMESPACE
    except OSError:
        return False


@lru_cache(maxsize=None)
def _serves_sessions() -> bool:
    named = [(pid, read_comm(pid)) for pid in list_pids()]
    return any(is_daemon(pid, comm) for pid, comm in named if comm in _SERVERS)
