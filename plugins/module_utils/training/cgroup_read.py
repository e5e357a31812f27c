# SPDX-License-Identifier: BSD-2-Clause
"""Read how much memory and CPU a process may have: its cgroup's bounds and those above it.

The smallest counts, on cgroup v1, on v2, and where a host has both (cgroups(7)).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from ..core.cgroup import count_cpus, find_paths, split_rows
from ..core.quote import quote
from ..core.values import NamedTuple
from ..host.files import read_text

_V2 = ""
_HIGH = "memory.high"
_ENDLESS = 2**60
"""Version 1 writes no limit as the largest number of pages, 2**63 less one page."""
_MOUNT = re.compile(r"^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$", re.MULTILINE)


class MemoryLevel(NamedTuple):
    """The bound of one cgroup: its folder, the limit, and what is used of it, in bytes.

    What the kernel gives up before it kills, file contents that nobody has used lately, does not
    count as used.
    """

    path: str
    limit: int
    used: int
    is_high: bool = False
    """Whether it is memory.high, above which the kernel slows a cgroup down and kills nobody."""

    @property
    def free(self) -> int:
        return max(self.limit - self.used, 0)


class Quota(NamedTuple):
    """How many CPUs a cgroup may use at a time; a fraction is common."""

    path: str
    cpus: float


class Place(NamedTuple):
    """The folder of a process in one hierarchy, and where that begins."""

    top: str
    folder: str
    unified: bool


def read_memory_levels(cgroup: str, mounts: str, root: str = "/") -> list[MemoryLevel] | None:
    """Return every memory limit that a process is under, its own cgroup's first.

    ``None`` where its cgroup cannot be seen from here, so that nobody knows.

    :param cgroup: /proc/PID/cgroup.
    :param mounts: /proc/self/mountinfo.
    """
    place = _find_place("memory", cgroup, mounts)
    if place is None:
        return None
    names = ("memory.max", "memory.current", "inactive_file")
    if not place.unified:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    levels = []
    for folder, name in _list_bounds(place, names[0]):
        limit = _read_number(f"{folder}/{name}", root)
        if limit is not None and limit < _ENDLESS:
            used = _read_number(f"{folder}/{names[1]}", root) or 0
            stat = read_text(f"{folder}/memory.stat", root) or ""
            idle = re.search(rf"^{names[2]} ([0-9]+)$", stat, re.MULTILINE)
            used = max(used - int(idle[1] if idle else 0), 0)
            levels.append(MemoryLevel(folder, limit, used, name == _HIGH))
    return levels


def read_task_levels(
    cgroup: str, mounts: str, root: str = "/"
) -> list[tuple[str, int, int]] | None:
    """Return each cgroup that bounds tasks: its folder, how many it may hold, how many it does.

    ``None`` where its cgroup cannot be seen from here.
    """
    place = _find_place("pids", cgroup, mounts)
    if place is None:
        return None
    levels = []
    for folder in _list_levels(place):
        most = _read_number(f"{folder}/pids.max", root)
        if most is not None:
            levels.append((folder, most, _read_number(f"{folder}/pids.current", root) or 0))
    return levels


def list_folders(cgroup: str, mounts: str, controller: str = "memory") -> list[str]:
    """Return the folder of a process's cgroup and those above it; none if hidden."""
    place = _find_place(controller, cgroup, mounts)
    return list(_list_levels(place)) if place else []


def _list_bounds(place: Place, hard: str) -> Iterator[tuple[str, str]]:
    for folder in _list_levels(place):
        yield folder, hard
        if place.unified:
            yield folder, _HIGH


def read_quotas(cgroup: str, mounts: str, root: str = "/") -> list[Quota]:
    """Return every CPU quota that a process is under, its own cgroup's first."""
    place = _find_place("cpu", cgroup, mounts)
    quotas = []
    for folder in _list_levels(place) if place else ():
        if place and place.unified:
            words = (read_text(f"{folder}/cpu.max", root) or "").split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            words = [(read_text(f"{folder}/{name}", root) or "").strip() for name in names]
        if len(words) == 2 and all(re.fullmatch(r"[1-9][0-9]*", word) for word in words):
            quotas.append(Quota(folder, int(words[0]) / int(words[1])))
    return quotas


def read_cpuset(cgroup: str, mounts: str, root: str = "/") -> tuple[str, int] | None:
    """Return the folder whose cpuset a process is in, and how many CPUs that has."""
    place = _find_place("cpuset", cgroup, mounts)
    names = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
    for folder in _list_levels(place) if place else ():
        for name in names:
            count = count_cpus(read_text(f"{folder}/{name}", root) or "")
            if count:
                return folder, count
    return None


def move_to(cgroup: str, path: str) -> str:
    """Return /proc/PID/cgroup as it would be in another cgroup, in every hierarchy."""
    return "\n".join(f"{number}:{names}:{path}" for number, names, dummy in split_rows(cgroup))


def _find_place(controller: str, cgroup: str, mounts: str) -> Place | None:
    """Return where the cgroup of a process lies for one controller.

    A hierarchy of version 1 has it or, where none does, the one of version 2. Inside of a
    container the mount may show a part only, and the path may lie outside of it.
    """
    paths = _read_paths(cgroup)
    unified = controller not in paths
    path = paths.get(_V2 if unified else controller)
    for within, top, kind, options in _MOUNT.findall(mounts):
        fits = kind == "cgroup2" if unified else controller in options.split(",")
        if not fits or path is None:
            continue
        inside = path if within == "/" else path[len(within) :]
        if within != "/" and path != within and not path.startswith(f"{within}/"):
            inside = ""
        return Place(top, os.path.normpath(f"{top}/{inside}"), unified)
    return None


def _read_paths(cgroup: str) -> Mapping[str, str]:
    paths = find_paths(cgroup)
    return {name: "" if path.startswith("/..") else path for name, path in paths.items()}


def _list_levels(place: Place) -> Iterator[str]:
    """Yield the folder of a cgroup and those above it, up to the mount."""
    folder = place.folder
    while len(folder) > len(place.top):
        yield folder
        folder = os.path.dirname(folder)
    yield place.top


def _read_number(path: str, root: str) -> int | None:
    """Return the number in a file; nothing where there is no such file, or no limit.

    :raises OSError: If it holds something else.
    """
    text = read_text(path, root)
    if text is None or text.strip() == "max":
        return None
    if not re.fullmatch("[0-9]{1,20}", text.strip()):
        raise OSError(f"{path} holds {quote(text.strip()[:40])}, which is not a number")
    return int(text)
