# SPDX-License-Identifier: BSD-2-Clause
"""Read how much of what the kernel limits is in use now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..host.daemons import read_comm
from ..host.door import list_pids, read_kernel_text
from ..host.look import read_limits
from .lockouts import KernelUse

_MEMORY = r"^(\S+):\s+(\d{1,18})( kB)?\s*$"


def read_kernel_use(nofiles: Iterable[tuple[int, str]] = (), proc: str = "/proc") -> KernelUse:
    """Return what is in use.

    :param nofiles: Hard limits on open files, each with whose it is.
    """
    memory = read_meminfo(proc)
    return KernelUse(
        tasks=int(_read_word(f"{proc}/loadavg", 3).partition("/")[2]),
        files=int(_read_word(f"{proc}/sys/fs/file-nr", 0)),
        memory=memory.get("MemTotal", 0),
        available=memory.get("MemAvailable", 0),
        swap=memory.get("SwapTotal", 0),
        committed=memory.get("Committed_AS", 0),
        commit_limit=memory.get("CommitLimit", 0),
        strict=read_kernel_text(f"{proc}/sys/vm/overcommit_memory").strip() == "2",
        huge_page=memory.get("Hugepagesize", 0),
        huge_pages=memory.get("HugePages_Total", 0),
        nofiles=tuple(nofiles),
    )


def _read_word(path: str, number: int) -> str:
    """Return one word of a file; a sandbox may show an empty one.

    :raises OSError: If there are fewer words.
    """
    words = read_kernel_text(path).split()
    if len(words) <= number:
        raise OSError(f"{path} does not hold that number")
    return words[number]


def find_largest_nofile(proc: str = "/proc") -> tuple[int, str]:
    """Return the largest hard limit on open files of all processes, and one that has it."""
    found = []
    for pid in list_pids(proc):
        try:
            hard = read_limits(pid, proc)["nofile"].hard
            found.append((hard, -pid, read_comm(pid, proc)))
        except OSError:
            continue  # It ended between the listing and the look.
    hard, pid, comm = max(found, default=(0, 0, "nobody"))
    return hard, f"{comm} (pid {-pid})"


def read_meminfo(proc: str = "/proc") -> dict[str, int]:
    """Return /proc/meminfo with sizes in bytes and counts as they are; other lines say nothing."""
    text = read_kernel_text(f"{proc}/meminfo")
    return {
        name: int(number) * (1024 if unit else 1)
        for name, number, unit in re.findall(_MEMORY, text, re.MULTILINE | re.ASCII)
    }


def read_memory_size(name: str, proc: str = "/proc") -> int:
    """Return one size of /proc/meminfo, in bytes.

    :raises OSError: If it does not say that: a sandbox may show an empty one.
    """
    return pick_memory_size(name, read_meminfo(proc), proc)


def pick_memory_size(name: str, found: Mapping[str, int], proc: str = "/proc") -> int:
    """Return one size of what was read of it; see :func:`read_memory_size`."""
    if name not in found:
        raise OSError(f"{proc}/meminfo does not say {name}")
    return found[name]
