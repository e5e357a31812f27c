# SPDX-License-Identifier: BSD-2-Clause
"""Know the kernel values with which a host could not be entered or would run out of memory.

Measured on Debian 12; docs/lockouts.md has the figures and what was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.values import NamedTuple
from .policy import KernelValue
from .sysctl_conf import parse_sysctl_number

_MIB = 2**20
_SPARE_TASKS, _SPARE_FILES = 1024, 8192


class KernelUse(NamedTuple):
    """What this host uses now. Memory is in bytes.

    ``strict`` tells whether ``commit_limit`` holds now. ``nofiles`` are the hard limits on open
    files in use or stated, each with whose it is.
    """

    tasks: int
    files: int
    memory: int
    available: int
    swap: int
    committed: int
    commit_limit: int
    strict: bool
    huge_page: int
    huge_pages: int
    nofiles: tuple[tuple[int, str], ...] = ()


class _Range(NamedTuple):
    """What is accepted, and why nothing else is."""

    least: int
    most: int
    why: str


def find_locking_values(wanted: Mapping[str, KernelValue], use: KernelUse) -> Iterator[str]:
    """Yield the values that would end logins or the host, as it is now.

    A minimum never lowers anything, so only ``exact`` is measured against the least.
    """
    ranges = _find_ranges(use)
    for key, value in wanted.items():
        number = _read(wanted, key)
        if key not in ranges or number is None:
            continue
        least, most, why = ranges[key]
        if value.exact is not None and number < least:
            yield f"kernel.{key}: {number} is too low: {why}; {least} or more is accepted"
        elif number > most:
            yield f"kernel.{key}: {number} is too high: {why}; {most} or less is accepted"
    yield from _find_overcommit(wanted, use)


def _find_ranges(use: KernelUse) -> dict[str, _Range]:
    reserve = max(256 * _MIB, use.memory // 20)
    for_pages = use.available + use.huge_pages * use.huge_page - reserve
    nofile, whose = max(use.nofiles, default=(0, ""))
    no_limit = 2**64
    tasks, files = use.tasks + _SPARE_TASKS, use.files + _SPARE_FILES
    running = f"{use.tasks} tasks run now, and no more could start, not even root's"
    return {
        "kernel.pid_max": _Range(tasks, no_limit, running),
        "kernel.threads-max": _Range(tasks, no_limit, running),
        "fs.file-max": _Range(
            files, no_limit, f"{use.files} files are open now, and sshd could open no more"
        ),
        "fs.nr_open": _Range(
            nofile, no_limit, f"{whose} has a nofile of {nofile}, which setrlimit(2) would refuse"
        ),
        "vm.max_map_count": _Range(
            4096, no_limit, "sshd does not start with 200, and no limit exempts root"
        ),
        "kernel.pty.max": _Range(64, no_limit, "a login at a terminal needs one"),
        "fs.epoll.max_user_watches": _Range(4096, no_limit, "Docker dies without"),
        "vm.min_free_kbytes": _Range(
            0, use.memory // 4 // 1024, "the kernel kills processes until this much is free"
        ),
        "vm.nr_hugepages": _Range(
            0,
            max(for_pages, 0) // max(use.huge_page, 1),
            f"pages of {use.huge_page} bytes would take the memory that logins need",
        ),
    }


def _find_overcommit(wanted: Mapping[str, KernelValue], use: KernelUse) -> Iterator[str]:
    """Yield why strict accounting (``vm.overcommit_memory=2``, proc_sys_vm(5)) stops a host."""
    stated = [key for key in wanted if key.startswith("vm.overcommit_")]
    mode = _read(wanted, "vm.overcommit_memory")
    strict = use.strict if mode is None else mode == 2
    limit, needed = _find_commit_limit(wanted, use), use.committed + 1024 * _MIB
    if strict and stated and limit < needed:
        yield (
            f"kernel.{stated[0]}: lets processes have {limit // _MIB}MiB in all, of which"
            f" {use.committed // _MIB}MiB are taken, so logins could not start;"
            f" {needed // _MIB}MiB or more is accepted"
        )


def _find_commit_limit(wanted: Mapping[str, KernelValue], use: KernelUse) -> int:
    """Return how much memory strict accounting gives out (``vm_commit_limit()``, mm/util.c)."""
    kibibytes = _read(wanted, "vm.overcommit_kbytes")
    if kibibytes:
        return kibibytes * 1024 + use.swap
    ratio = _read(wanted, "vm.overcommit_ratio")
    if ratio is None:
        return use.commit_limit
    return (use.memory - use.huge_pages * use.huge_page) * ratio // 100 + use.swap


def _read(wanted: Mapping[str, KernelValue], key: str) -> int | None:
    value = wanted.get(key)
    if value is None or value.exact is None:
        return value and value.minimum
    return parse_sysctl_number(value.exact)
