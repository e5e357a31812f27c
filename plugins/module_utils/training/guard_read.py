# SPDX-License-Identifier: BSD-2-Clause
"""Read what this process uses of each limit; a look at all that is cheap takes 50 microseconds.

Nothing is read but /proc/self, the sysctls of the kernel, /sys/fs/cgroup and statvfs(3).
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Iterator

from ..shared_memory.model import SHM
from .cgroup_read import list_folders
from .guard_levels import DESCRIPTORS, MAPPINGS, MEMORY, SPACE, TASKS, Level

_FOLDER = "/proc/self/fd"
_TASKS = "/proc/self/task"
_CGROUPS = "/sys/fs/cgroup"
_KINDS = 3
_SEEK_AGAIN = 10.0
"""Seconds."""
_PIECE = 65536
_ENDLESS = 2**60
_MEMORY = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.high", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
_HOST = ("kernel.threads-max", "kernel.pid_max")


class Sources:
    """Where the limits of this process lie; a process may be moved, so that they are sought again.

    :param threshold: Only above that part of a limit is it asked what of the memory is idle cache.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._bounds: list[tuple[str, str, str, str, str]] = []
        self._own_slice = ""
        self._mappings = self._host = 0
        self._host_name = _HOST[0]
        self._is_exempt = False
        self._found = -_SEEK_AGAIN

    def find(self) -> None:
        """Look where they lie now, if that is long ago; it takes a millisecond."""
        if time.monotonic() - self._found < _SEEK_AGAIN:
            return
        self._found = time.monotonic()
        cgroup, mounts = _read("/proc/self/cgroup"), _read("/proc/self/mountinfo")
        tasks = list_folders(cgroup, mounts, "pids")
        bounds = [(TASKS, f"{one}/pids.max", f"{one}/pids.current", "", "") for one in tasks]
        for one in list_folders(cgroup, mounts):
            stat = f"{one}/memory.stat"
            bounds += [(MEMORY, f"{one}/{a}", f"{one}/{b}", stat, idle) for a, b, idle in _MEMORY]
        self._bounds = [bound for bound in bounds if _read_number(bound[1]) is not None]
        own = f"/user-{os.getuid()}.slice"
        self._own_slice = next((one for one in tasks if one.endswith(own)), "")
        self._mappings = _read_number("/proc/sys/vm/max_map_count") or _ENDLESS
        values = {
            one: _read_number(f"/proc/sys/{one.replace('.', '/')}") or _ENDLESS for one in _HOST
        }
        self._host_name = min(_HOST, key=values.__getitem__)
        self._host = values[self._host_name]
        # The first user of the host may start as many as they like; of a user namespace it may not.
        self._is_exempt = os.getuid() == 0 and _read("/proc/self/uid_map").split()[:2] == ["0", "0"]

    def read_often(self) -> Iterator[Level]:
        """Yield what can be read in no time."""
        self.find()
        yield from read_descriptors()
        yield from read_shared_memory()
        yield from self.read_bounds(MEMORY)
        yield from self.read_bounds(TASKS)
        yield from read_space()

    def read_seldom(self) -> Iterator[Level]:
        """Yield what takes long to count, by what there is of it."""
        yield from self.read_mappings()
        yield from self._read_host()
        yield from self._read_user()

    def read_tasks(self) -> Iterator[Level]:
        """Yield the tasks of the cgroups, of the host and of the user."""
        self.find()
        yield from self.read_bounds(TASKS)
        yield from self._read_host()
        yield from self._read_user()

    def _read_host(self) -> Iterator[Level]:
        counts = re.search(r"/([0-9]+) ", _read("/proc/loadavg"))
        if counts:
            yield Level(TASKS, int(counts[1]), self._host, self._host_name)

    def read_bounds(self, name: str) -> Iterator[Level]:
        """Yield the limits of the cgroups that this process is in, its own first."""
        for kind, at_most, current, stat, idle in self._bounds:
            used = _read_number(current) if kind == name else None
            limit = _read_number(at_most) if used is not None else None
            if used is None or limit is None:
                continue
            if stat and used >= limit * self._threshold:
                match = re.search(rf"^{idle} ([0-9]+)$", _read(stat), re.MULTILINE)
                used = max(used - int(match[1] if match else 0), 0)
            yield Level(name, used, limit, at_most)

    def _read_user(self) -> Iterator[Level]:
        """Yield the tasks of the user, as far as they are ours: what the kernel counts is hidden.

        They are the threads and children of this process, or those of the user's slice.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        if soft == resource.RLIM_INFINITY or self._is_exempt:
            return
        threads = _list(_TASKS)
        children = (_read(f"{_TASKS}/{thread}/children").split() for thread in threads)
        used = len(threads) + sum(map(len, children))
        if self._own_slice:
            used = max(used, _read_number(f"{self._own_slice}/pids.current") or 0)
        yield Level(TASKS, used, soft, "RLIMIT_NPROC", hard)

    def read_mappings(self) -> Iterator[Level]:
        """Yield the number of mappings; they are counted, which takes half a microsecond each."""
        self.find()
        count = count_mappings()
        if count:
            yield Level(MAPPINGS, count, self._mappings, "vm.max_map_count")


def read_descriptors() -> Iterator[Level]:
    """Yield how many descriptors are open, of the soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    try:
        count = count_descriptors()
    except OSError:
        count = soft  # None is left to look with.
    yield Level(DESCRIPTORS, count, soft, "RLIMIT_NOFILE", hard)


def read_shared_memory(folder: str = SHM) -> Iterator[Level]:
    """Yield how much of /dev/shm is used; one without a limit has no end."""
    try:
        seen = os.statvfs(folder)
    except OSError:
        return
    if seen.f_blocks:
        used = (seen.f_blocks - seen.f_bavail) * seen.f_frsize
        yield Level(SHM, used, seen.f_blocks * seen.f_frsize, SHM)


def read_space() -> Iterator[Level]:
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft != resource.RLIM_INFINITY:
        pages = int(_read("/proc/self/statm").partition(" ")[0] or 0)
        yield Level(SPACE, pages * resource.getpagesize(), soft, "RLIMIT_AS")


def count_descriptors(folder: str = _FOLDER) -> int:
    """Return how many are open; since Linux 6.2 the size of the folder tells, which is cheap."""
    return os.stat(folder).st_size or len(os.listdir(folder)) - 1


def count_mappings(path: str = "/proc/self/maps") -> int:
    """Return how many mappings this process has; 0 where that cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        pieces = iter(lambda: os.read(handle, _PIECE), b"")
        return sum(piece.count(b"\n") for piece in pieces)
    finally:
        os.close(handle)


def find_kinds(folder: str = _FOLDER) -> list[tuple[str, int]]:
    """Return the biggest kinds of what is open, each with its number."""
    kinds: dict[str, int] = {}
    for name in _list(folder):
        try:
            kind = name_kind(os.readlink(f"{folder}/{name}"))
        except OSError:
            continue  # It was closed meanwhile.
        kinds[kind] = kinds.get(kind, 0) + 1
    return sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))[:_KINDS]


def name_kind(target: str) -> str:
    """Return what kind of thing a descriptor is open to: a pipe, shared memory, a folder's files.

    >>> name_kind("socket:[4711]"), name_kind("/data/shard-0001.tar")
    ('socket', 'files in /data')
    """
    special = re.match(r"(?:anon_inode:)?\[?([a-z_-]+)\]?:?(?:\[[0-9]+\])?$", target)
    if special:
        return special[1]
    if target.startswith((f"{SHM}/", "/memfd:")):
        return "shared memory"
    return f"files in {os.path.dirname(target) or target}"


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # No descriptor is left to look with.


def _read_number(path: str) -> int | None:
    """Return the number in a file; None where there is none, or one that stands for no limit."""
    text = _read(path).strip()
    number = int(text) if text.isdigit() else None
    return None if number is None or number >= _ENDLESS else number


def _read(path: str) -> str:
    """Return a file of the kernel's; nothing where it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return b"".join(iter(lambda: os.read(handle, _PIECE), b"")).decode("latin-1")
    except OSError:
        return ""
    finally:
        os.close(handle)
