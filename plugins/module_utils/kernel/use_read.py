# SPDX-License-Identifier: BSD-2-Clause
"""Read how much of what the kernel limits is in use now."""

from __future__ import annotations

from collections.abc import Iterable

from ..host.daemons import read_comm
from ..host.door import list_pids, read_kernel_text
from ..host.look import read_limits
from .lockouts import KernelUse


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
        raise OSError(f"{path} does not say it")
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
    """Return /proc/meminfo with sizes in bytes and counts as they are."""
    found = {}
    for line in read_kernel_text(f"{proc}/meminfo").splitlines():
        name, value = line.partition(":")[::2]
        number, unit = (*value.split(), "")[:2]
        found[name] = int(number) * (1024 if unit == "kB" else 1)
    return found
