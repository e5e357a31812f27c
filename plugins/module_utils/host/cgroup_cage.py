# SPDX-License-Identifier: BSD-2-Clause
"""A control group for what runs as a user: bounded, below that user's slice, ended as a whole.

Source: cgroups(7), and the kernel's cgroup-v2 document for ``cgroup.kill`` (Linux 5.14).
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from .children import reap
from .door import list_kernel_folder, read_kernel_file
from .marks import LIMITS, is_abandoned, make_mark

_TOP = "/sys/fs/cgroup"
_V1 = ("systemd", "pids", "memory")
MEMORY, TASKS = 2**31, 512
"""What one child of a user may take: bytes of memory, and tasks."""

_PATIENCE = 5.0
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)  # As in containers; no user brings that about.


class Cage:
    """One control group, one folder in each hierarchy; none where nobody may write them."""

    def __init__(self, uid: int, memory: int = MEMORY, tasks: int = TASKS, top: str = _TOP) -> None:
        """Make the group, below the user's slice where there is one.

        :param memory: The bytes that all in it may take, without swap.
        :raises OSError: If no group can be made where root may: a user can use up all that there
            may be.
        """
        self.folders: list[str] = []
        self.patience = find_patience(tasks)
        self._name = f"{LIMITS}{make_mark()}"
        for base in _list_hierarchies(top):
            slices = (f"{base}/user.slice/user-{uid}.slice", f"{base}/user.slice")
            parents = [path for path in slices if os.path.isdir(path)] or [base]
            folder = self._make_below(parents)
            if folder:
                self.folders.append(folder)
        bounds = {"pids.max": tasks, "memory.max": memory, "memory.swap.max": 0}
        for folder in self.folders:
            for file, value in {**bounds, "memory.limit_in_bytes": memory}.items():
                _write(f"{folder}/{file}", str(value))

    def _make_below(self, parents: Sequence[str]) -> str:
        """Return the folder of the group below the first of these that takes it."""
        trouble = OSError()
        for parent in parents:
            _remove_abandoned(parent)
            try:
                os.mkdir(f"{parent}/{self._name}", 0o755)
            except OSError as error:
                trouble = error  # systemd takes a slice away once it is empty.
            else:
                return f"{parent}/{self._name}"
        if trouble.errno in _CLOSED:
            return ""
        raise OSError(f"could not be confined to a control group: {trouble.strerror}")

    def enter(self, own: str = "/proc/self/cgroup") -> None:
        """Move this process into the group.

        :raises OSError: If it is not in it afterwards.
        """
        for folder in self.folders:
            _write(f"{folder}/cgroup.procs", "0")
        rows = os.fsdecode(read_kernel_file(own)).splitlines() if self.folders else []
        if sum(row.endswith(f"/{self._name}") for row in rows) < len(self.folders):
            raise OSError("could not be confined to a control group")

    def end(self, reaps: bool = False) -> None:
        """End every process of the group, and remove it.

        :param reaps: Whether this process has no other children than those in it.
        """
        deadline = time.monotonic() + self.patience
        for folder in self.folders:
            _write(f"{folder}/pids.max", "0")  # Nothing can be started any more.
            _write(f"{folder}/cgroup.kill", "1")
        while time.monotonic() < deadline:
            pids = {pid for folder in self.folders for pid in _read_pids(folder)}
            for pid in pids:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not pids:
                break
            if reaps:
                reap()
            time.sleep(0.002)
        for folder in self.folders:
            _remove(folder, deadline)


def find_patience(tasks: int) -> float:
    """Return the seconds that the end of so many tasks may take, on a slow host."""
    return _PATIENCE + tasks / 1000


def _remove_abandoned(parent: str) -> None:
    """End and remove the groups of runs that were killed."""
    for name in list_kernel_folder(parent):
        folder = f"{parent}/{name}"
        mark = name[len(LIMITS) :] if name.startswith(LIMITS) else ""
        with suppress(OSError):
            if mark and is_abandoned(mark, os.stat(folder).st_ctime):
                _write(f"{folder}/cgroup.kill", "1")
                for pid in _read_pids(folder):
                    os.kill(pid, signal.SIGKILL)
                _remove(folder, time.monotonic() + 1.0)


def _remove(folder: str, deadline: float) -> None:
    """Remove a group; the kernel lets it go a moment after its last process."""
    while True:
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)
        else:
            return


def _list_hierarchies(top: str) -> Sequence[str]:
    if os.path.exists(f"{top}/cgroup.controllers"):
        return (top,)
    return [path for path in (f"{top}/{name}" for name in _V1) if os.path.isdir(path)]


def _read_pids(folder: str) -> list[int]:
    try:
        return [int(line) for line in read_kernel_file(f"{folder}/cgroup.procs").split()]
    except (OSError, ValueError):
        return []


def _write(path: str, text: str) -> None:
    """Write a file of the kernel's; a controller that is not there bounds nothing."""
    with suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(handle, text.encode("ascii"))
        finally:
            os.close(handle)
