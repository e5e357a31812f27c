# SPDX-License-Identifier: BSD-2-Clause
"""Read what the processes of one run take of their limits; each look costs as little as it may.

The files are the kernel's alone: of what belongs to a user nothing is opened, and no program asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..core.values import RLIMITS, UNLIMITED, Rlimit, parse_proc_limits
from ..host.door import count_kernel_lines, list_pids, read_kernel_text
from ..kernel.read import read_sysctl
from ..kernel.use_read import read_meminfo
from ..node.usage_read import count_open_files, read_files, tells_fd_size
from ..shared_memory.model import SHM as FOLDER
from ..training.cgroup_read import list_folders
from ..training.shm_read import read_free, read_size
from ..why.host_read import count_hits, read_group
from ..why.reasons import (
    CGROUP,
    FILE_MAX,
    HOST,
    MAPPINGS,
    MEMLOCK,
    NOFILE,
    NPROC,
    PIDS,
    SHM,
    SPACE,
    THREADS,
)
from .trends import CPU, STACK, Level

_ROW = re.compile(
    r"^(Uid|CapEff|VmSize|VmLck|VmPin|VmData|VmStk|Threads):\s+([0-9a-f]+)", re.MULTILINE
)
_MAPPED = "vm.max_map_count"
_TASKS = ("kernel.threads-max", "kernel.pid_max")
_IPC_LOCK, _EXEMPT = 1 << 14, 1 << 21 | 1 << 24
"""CAP_IPC_LOCK; CAP_SYS_ADMIN and CAP_SYS_RESOURCE, either of which nproc does not bind."""

_SIZES = ((SPACE, "VmSize", "as"), (SPACE, "VmData", "data"), (STACK, "VmStk", "stack"))
_KIB, _MILLI = 1024, 1000
_EXITING = 0x4
"""PF_EXITING of the kernel's flags of a task."""

_ZOMBIE = "Z"
"""Has ended, and may never be waited for."""


_TICKS = os.sysconf("SC_CLK_TCK")
EVENTS = {
    "memory.events": ("oom_kill", CGROUP),
    "memory.oom_control": ("oom_kill", CGROUP),
    "pids.events": ("max", PIDS),
    "pids.events.local": ("max", PIDS),
}
"""Files of a cgroup that count, which of their counters is meant, and the reason it speaks for."""


class Member:
    """A process of the run, with what seldom changes of it; ``group`` is its process group."""

    __slots__ = (
        *("capable", "cgroup", "comm", "group", "limits", "parent", "pid", "start", "threads"),
        "uid",
    )

    def __init__(self, pid: int, comm: str, start: int) -> None:
        self.pid, self.comm, self.start = pid, comm, start
        self.uid, self.threads, self.capable = 0, 1, 0
        self.parent, self.group = 0, 0
        self.cgroup = ""
        self.limits: Mapping[str, Rlimit] = dict.fromkeys(RLIMITS, Rlimit(UNLIMITED, UNLIMITED))

    @property
    def name(self) -> str:
        return f"process {self.pid} ({self.comm})"


def read_stat(pid: int) -> tuple[str, list[str]]:
    """Return the name of a process, and the fields of its stat from the third on.

    :raises OSError, ValueError: If it is gone.
    """
    text = read_kernel_text(f"/proc/{pid}/stat")
    opened, closed = text.index("("), text.rindex(")")
    return text[opened + 1 : closed], text[closed + 2 :].split()


class Tree:
    """The processes that descend from one, also those whose parents have ended since."""

    def __init__(self, pid: int) -> None:
        self.root = pid
        self.members: dict[int, Member] = {}
        self._strangers: frozenset[int] = frozenset()
        self._tells_size = tells_fd_size("/proc")

    def find(self) -> tuple[list[Member], list[Member]]:
        """Look who is new, and who has ended; return both."""
        pids = frozenset(list_pids())
        gone = [one for pid, one in self.members.items() if pid not in pids]
        for one in gone:
            del self.members[one.pid]
        self._strangers &= pids
        new = [one for one in map(self._meet, sorted(pids - self._strangers)) if one]
        return new, gone

    def forget_strangers(self) -> None:
        """Look at all anew the next time: a number may be another's by now."""
        self._strangers = frozenset()

    def _meet(self, pid: int) -> Member | None:
        if pid in self.members:
            return None
        try:
            comm, fields = read_stat(pid)
            if fields[0] != _ZOMBIE and self._is_of_run(pid, fields):
                member = Member(pid, comm, int(fields[19]))
                self.refresh(member)
                self.members[pid] = member
                return member
        except (OSError, ValueError, IndexError):
            return None  # It has ended meanwhile.
        self._strangers |= {pid}
        return None

    def _is_of_run(self, pid: int, fields: Sequence[str]) -> bool:
        return pid == self.root or int(fields[1]) in self.members

    def refresh(self, member: Member) -> None:
        """Read what seldom changes of a process.

        :raises OSError: If it ends: its cgroup is no longer told then (``proc_cgroup_show()``).
        """
        folder = f"/proc/{member.pid}"
        limits = parse_proc_limits(read_kernel_text(f"{folder}/limits"))
        cgroup = read_kernel_text(f"{folder}/cgroup").strip()
        comm, fields = read_stat(member.pid)
        if int(fields[6]) & _EXITING:
            raise ProcessLookupError(member.pid)
        member.limits, member.cgroup, member.comm = limits, cgroup, comm
        member.parent, member.group = int(fields[1]), int(fields[2])

    def read_levels(self, member: Member) -> Iterator[Level]:
        """Yield what one process takes of its own limits.

        :raises OSError, ValueError: If it has ended.
        """
        folder, limits = f"/proc/{member.pid}", member.limits
        rows = read_rows(member)
        if "VmSize" not in rows:
            return  # It has ended, and waits to be seen.
        for code, name, item in _SIZES:
            yield from _bound(code, int(rows[name]) * _KIB, member, item)
        if not member.capable & _IPC_LOCK:
            locked = max(int(rows["VmLck"]), int(rows.get("VmPin", 0))) * _KIB
            yield from _bound(MEMLOCK, locked, member, "memlock")
        files = count_open_files(folder, self._tells_size)
        if files is not None:
            yield from _bound(NOFILE, files, member, "nofile")
        if limits["cpu"].soft != UNLIMITED:
            _comm, fields = read_stat(member.pid)
            used = (int(fields[11]) + int(fields[12])) * _MILLI // _TICKS
            soft = limits["cpu"].soft * _MILLI
            yield Level(CPU, used, soft, member.name, member.pid, "cpu")


def read_rows(member: Member) -> dict[str, str]:
    """Return the rows of the status of a process; note whose it is and how many threads it has.

    :raises OSError, KeyError: If it has ended.
    """
    rows = dict(_ROW.findall(read_kernel_text(f"/proc/{member.pid}/status")))
    member.uid, member.threads = int(rows["Uid"]), int(rows["Threads"])
    member.capable = int(rows["CapEff"], 16)
    return rows


def read_mounts_of(pid: int) -> int:
    """Return the mount namespace of a process, as the number that lsns(8) shows.

    :raises OSError: If it has ended.
    """
    return os.stat(f"/proc/{pid}/ns/mnt").st_ino


def _bound(code: str, used: int, member: Member, item: str) -> Iterator[Level]:
    soft = member.limits[item].soft
    if soft != UNLIMITED:
        yield Level(code, used, soft, member.name, member.pid, item)


def read_mappings(member: Member) -> Level | None:
    """Return how many mappings a process has; it costs most of all that is read."""
    try:
        used = count_kernel_lines(f"/proc/{member.pid}/maps")
        most = int(read_sysctl(_MAPPED) or 0)
    except (OSError, ValueError):
        return None  # It has ended, or may not be looked at.
    return Level(MAPPINGS, used, most, member.name, member.pid, _MAPPED) if most and used else None


def read_users(members: Iterable[Member]) -> Iterator[Level]:
    """Yield how many tasks each user of the run has on this host, where nproc binds."""
    bound = find_bounds(members)
    if not bound:
        return
    counts = dict.fromkeys(bound, 0)
    for pid in list_pids():
        try:
            if os.stat(f"/proc/{pid}").st_uid in counts:
                rows = dict(_ROW.findall(read_kernel_text(f"/proc/{pid}/status")))
                counts[int(rows["Uid"])] += int(rows["Threads"])
        except (OSError, KeyError):
            continue  # It has ended.
    for uid, used in counts.items():
        yield level_user(uid, used, bound[uid])


def level_user(uid: int, used: int, most: int) -> Level:
    """Return how many tasks a user has, of how many."""
    return Level(NPROC, used, most, f"user {uid}", 0, "nproc")


def find_bounds(members: Iterable[Member]) -> dict[int, int]:
    """Return the least nproc of each user of the run whom one binds."""
    bounds: dict[int, int] = {}
    for one in members:
        soft = one.limits["nproc"].soft
        if one.uid and not one.capable & _EXEMPT and soft < bounds.get(one.uid, UNLIMITED):
            bounds[one.uid] = soft
    return bounds


def read_host() -> Iterator[Level]:
    """Yield what all processes of the host take together."""
    files = read_files()
    if files and files.maximum < 2**62:
        yield Level(FILE_MAX, files.allocated, files.maximum, "the host", 0, "fs.file-max")
    used = int(read_kernel_text("/proc/loadavg").split()[3].partition("/")[2])
    for key in _TASKS:
        most = read_sysctl(key) or ""
        if most.isdigit() and int(most):
            yield Level(THREADS, used, int(most), "the host", 0, key)
    memory = read_meminfo()
    total, free = memory.get("MemTotal", 0), memory.get("MemAvailable", 0)
    if total:
        yield Level(HOST, max(total - free, 0), total, "the host")


def read_shared_memory(member: Member) -> Iterator[Level]:
    """Yield how much of /dev/shm is taken where a process lives.

    In a user namespace its user may mount there what keeps root waiting: root does not look.
    """
    folder = FOLDER
    try:
        if not _shares(member.pid, "mnt"):
            folder = f"/proc/{member.pid}/root{FOLDER}"
            if os.geteuid() == 0 and not _shares(member.pid, "user"):
                return
        size = read_size(folder)
        if size != UNLIMITED:
            used = size - min(read_free(folder), size)
            yield Level(SHM, used, size, f"{FOLDER} of {member.name}", member.pid, "shm_size")
    except OSError:
        return  # It has ended, or may not be looked at.


def _shares(pid: int, kind: str) -> bool:
    return os.stat(f"/proc/{pid}/ns/{kind}").st_ino == os.stat(f"/proc/self/ns/{kind}").st_ino


class Groups:
    """The cgroups of the run and those above: their bounds and their counters of events.

    ``watched`` are the files that count; an event of one wakes whoever waits for it.
    """

    def __init__(self) -> None:
        self._own: dict[str, tuple[str, ...]] = {}
        self.bound: tuple[str, ...] = ()
        self.watched: tuple[str, ...] = ()
        self._first: dict[str, int] = {}

    def find(self, cgroups: Iterable[str]) -> bool:
        """Look where the cgroups of processes lie; return whether one is new."""
        new = set(cgroups) - self._own.keys()
        if not new:
            return False
        mounts = read_kernel_text("/proc/self/mountinfo")
        for cgroup in new:
            found = [*list_folders(cgroup, mounts), *list_folders(cgroup, mounts, "pids")]
            self._own[cgroup] = tuple(dict.fromkeys(found))
        self._list()
        return True

    def forget(self, cgroups: Collection[str]) -> None:
        """Drop the cgroups in which nobody lives any more."""
        for gone in self._own.keys() - set(cgroups):
            del self._own[gone]
        self._list()
        self._first = {path: self._first[path] for path in self.watched}

    def _list(self) -> None:
        folders = list(dict.fromkeys(one for each in self._own.values() for one in each))
        self.bound = tuple(one for one in folders if any(read_group(one)))
        self.watched = tuple(
            path
            for path in (f"{one}/{name}" for one in folders for name in EVENTS)
            if os.path.exists(path) and not os.path.exists(f"{path}.local")
        )
        for path in self.watched:
            self._first.setdefault(path, _count(path))

    def list_folders(self, cgroup: str) -> tuple[str, ...]:
        """Return the folders of a cgroup that was found, and of those above it."""
        return self._own.get(cgroup, ())

    def read_levels(self, folders: Iterable[str] | None = None) -> Iterator[Level]:
        """Yield what is taken of the bounds of some cgroups, by default of all that have one."""
        for folder in self.bound if folders is None else folders:
            for one in read_group(folder):
                code = CGROUP if one.item == "memory.max" else PIDS
                item = "memory.max" if code == CGROUP else "tasks"
                yield Level(code, one.used, one.most, one.path, 0, item)

    def find_shared(self, known: set[int]) -> set[str]:
        """Return the folders with a bound in which others live than those who are known.

        What a cgroup counts of kills may be of any of them.
        """
        found = set()
        for folder in self.bound:
            try:
                pids = map(int, read_kernel_text(f"{folder}/cgroup.procs").split())
            except OSError:
                continue
            if not set(pids) <= known:
                found.add(folder)
        return found

    def read_counters(self) -> dict[str, int]:
        """Return by how much each counter has grown since it was found."""
        return {path: _count(path) - self._first[path] for path in self.watched}


def _count(path: str) -> int:
    return count_hits(path, EVENTS[path.rpartition("/")[2]][0])


def count_kills() -> int | None:
    """Return how many processes the kernel has killed for memory since the boot."""
    try:
        found = re.search(r"^oom_kill (\d+)$", read_kernel_text("/proc/vmstat"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None
