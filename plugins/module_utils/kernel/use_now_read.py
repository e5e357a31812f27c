# SPDX-License-Identifier: BSD-2-Clause
"""Read how much of a sysctl's bound is taken now, and who holds most: for whoever asks about one.

Sources: ``inotify_show_fdinfo()`` and inotify(7), keyrings(7) for /proc/key-users, proc(5).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping

from ..core.values import NamedTuple
from ..host.children import run_in_children
from ..host.daemons import read_comm
from ..host.door import count_kernel_lines, list_kernel_folder, list_pids, read_kernel_text
from ..host.users import name_user
from .read import read_sysctl

_TIME_LIMIT = 10.0
_MOST_TOLD = 3
_SHOWN_SHARE = 10
"""Of each hundred, how many must be taken to be worth a line."""

_INOTIFY = "anon_inode:inotify"
_KEY_USER = re.compile(r"^ *([0-9]+): +[0-9]+ [0-9]+/[0-9]+ ([0-9]+)/([0-9]+) ([0-9]+)/([0-9]+)$")
_INSTANCES, _WATCHES = "fs.inotify.max_user_instances", "fs.inotify.max_user_watches"
_ROWS = {"kernel.shmmni": "shm", "kernel.msgmni": "msg"}
_COUNTERS = {"kernel.pty.max": "kernel.pty.nr", "fs.aio-max-nr": "fs.aio-nr"}


class Use(NamedTuple):
    """How much is taken of how much, and by whom."""

    used: int
    most: int
    who: str


class Holder(NamedTuple):
    """What one process holds: its user and number, and how many of the thing."""

    uid: int
    pid: int
    held: int


def find_uses(key: str) -> list[Use]:
    """Return who takes a tenth of a bound or more, those that take most first."""
    try:
        running = read_sysctl(key) or ""
        most = int(running) if running.isdigit() else 0
        found = list(_FINDERS[key](key, most)) if key in _FINDERS and most else []
    except (OSError, ValueError, IndexError):
        return []  # What cannot be looked at is not told.
    shown = [one for one in found if one.used * 100 >= one.most * _SHOWN_SHARE]
    return sorted(shown, key=lambda one: -one.used)[:_MOST_TOLD]


def count_tasks(uid: int) -> Use | None:
    """Return how many tasks a user has, as RLIMIT_NPROC counts them, and which process most."""
    return next(iter(_sum_by_user(_ask(lambda: _list_tasks(uid)), 0)), None)


def _find_inotify(key: str, most: int) -> Iterator[Use]:
    yield from _sum_by_user(_ask(lambda: _list_inotify(key == _WATCHES)), most)


def _find_mappings(_key: str, most: int) -> Iterator[Use]:
    holders = _ask(_list_mappings)
    for one in sorted(holders, key=lambda one: -one.held)[:1]:
        yield Use(one.held, most, f"the largest process, {_name(one)} of {name_user(one.uid)}")


def _find_keys(key: str, _most: int) -> Iterator[Use]:
    """Yield what each user has of the keyrings; root's bounds are keys of their own."""
    is_roots, in_bytes = ".root_" in key, key.endswith("bytes")
    for row in read_kernel_text("/proc/key-users").splitlines():
        match = _KEY_USER.match(row)
        if match and (match[1] == "0") == is_roots:
            used, most = (match[4], match[5]) if in_bytes else (match[2], match[3])
            yield Use(int(used), int(most), name_user(int(match[1])))


def _find_counted(key: str, most: int) -> Iterator[Use]:
    yield Use(int(read_sysctl(_COUNTERS[key]) or 0), most, f"all together, {_COUNTERS[key]}")


def _find_rows(key: str, most: int) -> Iterator[Use]:
    rows = read_kernel_text(f"/proc/sysvipc/{_ROWS[key]}").splitlines()
    yield Use(max(len(rows) - 1, 0), most, "all together, by ipcs")


def _find_files(_key: str, most: int) -> Iterator[Use]:
    yield Use(int((read_sysctl("fs.file-nr") or "0").split()[0]), most, "all together, fs.file-nr")


def _find_tasks(_key: str, most: int) -> Iterator[Use]:
    tasks = read_kernel_text("/proc/loadavg").split()[3].partition("/")[2]
    yield Use(int(tasks), most, "all tasks, /proc/loadavg")


_FINDERS: Mapping[str, Callable[[str, int], Iterator[Use]]] = {
    **dict.fromkeys((_INSTANCES, _WATCHES), _find_inotify),
    **{f"kernel.keys.{one}": _find_keys for one in ("maxkeys", "maxbytes")},
    **{f"kernel.keys.root_{one}": _find_keys for one in ("maxkeys", "maxbytes")},
    **dict.fromkeys(_COUNTERS, _find_counted),
    **dict.fromkeys(_ROWS, _find_rows),
    **dict.fromkeys(("kernel.pid_max", "kernel.threads-max"), _find_tasks),
    "fs.file-max": _find_files,
    "vm.max_map_count": _find_mappings,
}


def _ask(listing: Callable[[], list[Holder]]) -> list[Holder]:
    """Return what a listing finds; a process can keep whoever reads its memory's map waiting."""
    (report,) = run_in_children([listing], _TIME_LIMIT)
    return [Holder(*row) for row in report.value or ()]


def _sum_by_user(holders: list[Holder], most: int) -> Iterator[Use]:
    for uid in sorted({one.uid for one in holders}):
        mine = [one for one in holders if one.uid == uid]
        first = max(mine, key=lambda one: one.held)
        partial = "" if os.geteuid() == 0 else "; processes of other users are seen by root only"
        who = f"{name_user(uid)}, {first.held} of them by {_name(first)}{partial}"
        yield Use(sum(one.held for one in mine), most, who)


def _name(holder: Holder) -> str:
    return f"{read_comm(holder.pid) or 'a process that ended'} (pid {holder.pid})"


def _list_inotify(watches: bool) -> list[Holder]:
    """Return who holds instances of inotify, or watches.

    They are charged to the user who made them, who is nearly always the process's.
    """
    return list(_list_holders(lambda pid: _count_inotify(pid, watches)))


def _count_inotify(pid: int, watches: bool) -> int:
    held = 0
    for name in list_kernel_folder(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{name}") == _INOTIFY:
                text = read_kernel_text(f"/proc/{pid}/fdinfo/{name}") if watches else ""
                held += text.count("inotify wd:") if watches else 1
        except OSError:
            continue  # It was closed meanwhile.
    return held


def _list_mappings() -> list[Holder]:
    return list(_list_holders(lambda pid: count_kernel_lines(f"/proc/{pid}/maps")))


def _list_tasks(uid: int) -> list[Holder]:
    return [one for one in _list_holders(_count_threads) if one.uid == uid]


def _count_threads(pid: int) -> int:
    return len(list_kernel_folder(f"/proc/{pid}/task"))


def _list_holders(count: Callable[[int], int]) -> Iterator[Holder]:
    """Yield what each process holds, if that is anything and may be seen.

    What processes share since a fork counts for each; whoever looks, a child of ours, is left out.
    """
    for pid in set(list_pids()) - {os.getpid()}:
        try:
            status = read_kernel_text(f"/proc/{pid}/status")
            held = count(pid)
        except OSError:
            continue  # It ended, or is another user's.
        real = re.search(r"^Uid:\s+([0-9]+)", status, re.MULTILINE)
        if real and held:
            yield Holder(int(real[1]), pid, held)
