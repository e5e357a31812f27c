# SPDX-License-Identifier: BSD-2-Clause
"""Look at what a host shows of a run's end: counters, its log, and the process if it still runs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.values import Rlimit
from ..host.daemons import read_comm
from ..host.door import (
    count_kernel_lines,
    list_kernel_folder,
    list_pids,
    read_kernel_text,
)
from ..host.guarded import run_guarded
from ..host.look import may_lock_memory, read_limits, read_process
from ..host.program import run_program
from ..kernel.read import read_sysctl
from ..kernel.use_now_read import find_uses
from ..kernel.use_read import read_meminfo
from ..training.cgroup_read import list_folders
from ..training.open_files_read import read_mounts
from ..training.shm_read import find_folder, read_free, read_size
from ..training.tasks_read import count_tasks_of
from .facts import Facts, Group, Task, Use
from .kills import Line
from .no_limits import DISK
from .reasons import REASONS, SHM, THREADS

_LOG = "/dev/kmsg"
_RECORD = 8192
_MOST_RECORDS = 50000
_RECORD_HEAD = re.compile(rb"(\d+),(\d+),(\d+),[^;]*;([^\n]*)")
_OF_KERNEL = 8
"""From this priority on, a program has written into the kernel's log."""
_SIZES = {"VmLck": "memlock", "VmSize": "as", "VmData": "data", "VmStk": "stack"}
_MAPPINGS = "vm.max_map_count"
_TASKS = ("kernel.threads-max", "kernel.pid_max")
_BOUNDS = (
    ("memory.max", ("memory.max", "memory.current"), "memory.events", "oom_kill"),
    (
        "memory.max",
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        "memory.oom_control",
        "oom_kill",
    ),
    ("pids.max", ("pids.max", "pids.current"), "pids.events", "max"),
)
"""The bounds of a cgroup, in version 2 and 1: what they are, where they stand, what counts hits."""

_LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs", "overlay", "vfat", "zfs")
_ENDLESS = 2**60
_PATIENCE = 5.0
_AROUND = 60
"""Seconds between a run's end and what systemd-oomd says of it, at most."""


def read_facts(codes: Iterable[str], facts: Facts, pid: int | None = None) -> Facts:
    """Return what is known of a run's end with what the host shows for some reasons.

    :param facts: What is known already: whose run it was, when it ended, what it asked for.
    :param pid: A process of the run, if one still lives.
    """
    lines, is_whole = read_log()
    task = read_task(pid) if pid else None
    items = {REASONS[code].item for code in codes}
    uses: dict[str, Sequence[Use]] = {
        item: [Use(*use) for use in find_uses(item)] for item in items if "." in item
    }
    if THREADS in codes:
        uses.update((item, [_read_tasks(item)]) for item in _TASKS)
    if SHM in codes:
        uses["shm_size"] = list(_read_shm(pid))
    if set(DISK) & set(codes):
        uses.update(_read_disk(facts.path))
    running = _is_oomd_here()
    return facts._replace(
        uid=task.uid if task else facts.uid,
        task=task,
        groups=(*facts.groups, *(read_groups(f"/proc/{pid}/cgroup") if pid else ())),
        uses=uses,
        log=lines,
        log_is_whole=is_whole and (facts.age or 0.0) < time.clock_gettime(time.CLOCK_BOOTTIME),
        memory={**read_meminfo(), "overcommit": int(read_sysctl("vm.overcommit_memory") or 0)},
        has_oomd=running,
        oomd=_read_oomd(facts) if running else "",
    )


def read_task(pid: int) -> Task | None:
    """Return a process with what it has taken of its limits; nothing where it has ended."""
    try:
        process = read_process(pid)
        limits: dict[str, Rlimit] = {**read_limits(pid)}
        status = read_kernel_text(f"/proc/{pid}/status")
        most = int(read_sysctl(_MAPPINGS) or 0)
        limits[_MAPPINGS] = Rlimit(most, most)
        taken = dict(_count_taken(pid, process.uid, status))
        if read_process(pid).start != process.start:
            return None  # Its number is another's by now.
    except (OSError, ValueError):
        return None
    return Task(pid, process.comm, process.uid, process.start, limits, taken, may_lock_memory(pid))


def _count_taken(pid: int, uid: int, status: str) -> Iterator[tuple[str, int]]:
    """Yield how much a process has taken of each limit that shows."""
    for name, item in _SIZES.items():
        found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
        if found:
            yield item, int(found[1]) * 1024
    yield "nproc", count_tasks_of(uid)
    try:
        yield "nofile", len(list_kernel_folder(f"/proc/{pid}/fd"))
        yield _MAPPINGS, count_kernel_lines(f"/proc/{pid}/maps")
    except OSError:
        return  # Another user's, and we are not root.


def read_groups(path: str) -> Iterator[Group]:
    """Yield the bounds of memory and tasks above a process, with how often each was hit.

    :param path: Its /proc/PID/cgroup.
    """
    try:
        cgroup, mounts = read_kernel_text(path), read_kernel_text("/proc/self/mountinfo")
    except OSError:
        return
    folders = [one for name in ("memory", "pids") for one in list_folders(cgroup, mounts, name)]
    for folder in dict.fromkeys(folders):
        yield from read_group(folder)


def read_group(folder: str) -> Iterator[Group]:
    """Yield the bounds of one cgroup, of either version, with how often each was hit."""
    for item, names, events, word in _BOUNDS:
        numbers = [_read_number(f"{folder}/{name}") for name in names]
        most, used = numbers[0], numbers[1]
        if most is not None and most < _ENDLESS:
            hits = count_hits(f"{folder}/{events}", word)
            used = (used or 0) - (_count_files(folder) if item == "memory.max" else 0)
            yield Group(item, folder, most, max(used, 0), hits)


def _read_number(path: str) -> int | None:
    try:
        text = read_kernel_text(path).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def count_hits(path: str, word: str) -> int:
    """Return a counter of events of a cgroup; 0 where there is none."""
    try:
        found = re.search(rf"^{word} (\d+)$", read_kernel_text(path), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _count_files(folder: str) -> int:
    """Return the bytes that a cgroup has of files, which the kernel takes back when it needs them.

    In version 1 the fields that count what lies below are called total.
    """
    try:
        text = read_kernel_text(f"{folder}/memory.stat")
    except OSError:
        return 0
    found: dict[str, str] = dict(re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE))
    names = ("inactive_file", "active_file")
    return sum(int(found.get(f"total_{one}") or found.get(one) or 0) for one in names)


def _read_tasks(item: str) -> Use:
    used = read_kernel_text("/proc/loadavg").split()[3].partition("/")[2]
    return Use(int(used), int(read_sysctl(item) or 0), "all tasks, /proc/loadavg")


def _read_shm(pid: int | None) -> Iterator[Use]:
    folder = find_folder(str(pid) if pid else "self")
    try:
        size = read_size(folder)
        yield Use(size - min(read_free(folder), size), size, folder)
    except OSError:
        return


def _read_disk(path: str) -> Mapping[str, Sequence[Use]]:
    """Return how full the file system is that a path is on, by its mount: the path is a user's."""
    mounts = [(row[4], row[row.index("-") + 1]) for row in read_mounts("/proc/self")]
    above = [one for one in mounts if f"{path}/".startswith(f"{one[0].rstrip('/')}/")]
    point, kind = max(above, key=lambda one: len(one[0]), default=("", ""))
    if not path or kind not in _LOCAL:
        return {}  # Another machine may never answer, and a user's file system neither.
    told, _problem = run_guarded(lambda: list(os.statvfs(point)), _PATIENCE)
    if not told:
        return {}
    _size, unit, blocks, _free, available, inodes, _all, left = told[:8]
    taken = (blocks - available) * unit
    return {
        DISK[0]: [Use(taken, blocks * unit, f"bytes of {point}")],
        DISK[1]: [Use(inodes - left, inodes, f"inodes of {point}")],
    }


def read_log() -> tuple[tuple[Line, ...] | None, bool]:
    """Return the kernel's log, and whether it still goes back to the boot; none where forbidden."""
    try:
        handle = os.open(_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None, False
    now, found, first = time.clock_gettime(time.CLOCK_MONOTONIC), [], -1
    try:
        for _number in range(_MOST_RECORDS):
            match = _RECORD_HEAD.match(os.read(handle, _RECORD))
            if match:
                first = int(match[2]) if first < 0 else first
                text = match[4].decode("utf-8", "replace")
                if int(match[1]) < _OF_KERNEL:
                    found.append(Line(max(now - int(match[3]) / 1e6, 0.0), text))
    except OSError:
        pass  # EAGAIN at its end; EPIPE where it was overwritten meanwhile.
    finally:
        os.close(handle)
    return tuple(found), first == 0


def _is_oomd_here() -> bool:
    """Tell whether systemd-oomd runs; it has a user of its own, and its name proves enough."""
    return any(read_comm(pid) == "systemd-oomd" for pid in list_pids())


def _read_oomd(facts: Facts) -> str:
    """Return the last kill that systemd-oomd tells of while the run lived, or about its end."""
    age = facts.age or 0.0
    first = facts.started if facts.started is not None else age
    words = ["/usr/bin/journalctl", "--no-pager", "-o", "cat", "-u", "systemd-oomd"]
    words.append(f"--since=-{int(first) + _AROUND}s")
    if age > _AROUND:
        words.append(f"--until=-{int(age) - _AROUND}s")
    code, text = run_program(words, _PATIENCE, with_errors=False)
    kills = [line for line in text.splitlines() if line.startswith("Killed ")] if code == 0 else []
    own = [line for line in kills if facts.home and line.startswith(f"Killed {facts.home} ")]
    return (own or kills or [""])[-1]


def name_unseen(facts: Facts) -> Mapping[str, str]:
    """Return what could not be seen, and what root would see in its place."""
    unseen = {}
    if facts.log is None:
        unseen["kernel log"] = "the kernel's log, which names who was killed or refused"
    if facts.task and "nofile" not in facts.task.taken:
        unseen["task"] = "how many files and mappings that process has"
    return unseen if os.geteuid() else {}
