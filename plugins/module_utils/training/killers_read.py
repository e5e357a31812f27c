# SPDX-License-Identifier: BSD-2-Clause
"""Find who would kill a run that takes too much memory before the kernel does, and who has already.

Sources: systemd-oomd.service(8), earlyoom(1), memory.events in cgroup-v2.rst of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.cgroup import list_units
from ..core.named import NamedTuple
from ..host.door import read_kernel_text
from ..host.manager_read import show_oomd
from ..host.process import read_unit_pids
from ..kernel.use_read import read_meminfo
from .causes import Room
from .cgroup_read import list_folders
from .loader import format_size

_EARLYOOM = "earlyoom.service"
_OOMD = "systemd-oomd.service"
_PERCENT = re.compile(r"(?<= )-m ?([0-9]{1,3})(?:,[0-9]+)?(?= |$)")
_KIB = re.compile(r"(?<= )-M ?([0-9]{1,12})(?:,[0-9]+)?(?= |$)")
_SHARE = 10
"""Of each hundred bytes, what earlyoom leaves free where nobody says."""


class Killers(NamedTuple):
    """What is told beside the memory that is left, and what earlyoom takes away from it."""

    notes: tuple[str, ...] = ()
    room: Room | None = None


def find_killers(cgroup: str, mounts: str) -> Killers:
    """Return who would kill a process of a cgroup, in the order in which they come.

    :param cgroup: /proc/PID/cgroup.
    :param mounts: /proc/self/mountinfo.
    """
    notes = [*_find_oomd(cgroup), *_find_killed(cgroup, mounts)]
    memory = read_meminfo()
    swap = memory.get("SwapTotal", 0)
    pids = read_unit_pids(_EARLYOOM)
    if not pids:
        slow = f"{format_size(swap)} of swap come first, and are slow"
        return Killers((slow, *notes) if swap else tuple(notes))
    kept = find_kept(_read_command(pids[0]), memory.get("MemTotal", 0))
    if swap:
        told = f"earlyoom kills when {format_size(kept)} of memory are left and swap is nearly full"
        return Killers((told, *notes))
    told = f"earlyoom kills the largest process when {format_size(kept)} are left"
    free = max(memory.get("MemAvailable", 0) - kept, 0)
    return Killers((told, *notes), Room("the host above earlyoom's bound", free, end=told))


def find_kept(command: str, memory: int) -> int:
    """Return how many bytes earlyoom leaves free, by its command line."""
    size = _KIB.search(command)
    if size:
        return int(size[1]) * 1024
    share = _PERCENT.search(command)
    return memory * (int(share[1]) if share else _SHARE) // 100


def _find_oomd(cgroup: str) -> Iterator[str]:
    if not read_unit_pids(_OOMD):
        return
    for unit in list_units(cgroup):
        pressure, swap = show_oomd(unit)
        if pressure:
            yield f"systemd-oomd kills {unit} when its memory pressure stays high"
        if swap:
            yield f"systemd-oomd kills {unit} when swap is nearly full"


def _find_killed(cgroup: str, mounts: str) -> Iterator[str]:
    """Yield that processes of a cgroup were killed: what memory.events counts, those below too."""
    for folder in list_folders(cgroup, mounts)[:1]:
        try:
            text = read_kernel_text(f"{folder}/memory.events")
        except OSError:
            continue
        killed = re.search(r"^oom_kill ([1-9][0-9]*)$", text, re.MULTILINE)
        if killed:
            yield f"the kernel has killed {killed[1]} of {folder} so far (memory.events)"


def _read_command(pid: int) -> str:
    try:
        return read_kernel_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
    except OSError:
        return ""
