# SPDX-License-Identifier: BSD-2-Clause
"""A name that says which process made a thing, so that it can be removed once that one is gone.

A process is known by its number and its start (proc_pid_stat(5), field 22), since numbers are used
again; both mean something only in one boot and in one pid and time namespace, so the name holds
these too.
"""

from __future__ import annotations

import os
import re
import time
import zlib
from functools import lru_cache

from .door import read_kernel_text

LIMITS = "mlhost-limits-"
"""What stands before a mark in most names."""

_MARK = r"([1-9][0-9]{0,9})-([0-9]{1,20})-([0-9a-f]{8})-([0-9a-f]{8})-[0-9a-f]{16}"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_SPACES = ("/proc/self/ns/pid", "/proc/self/ns/time")
_UNKNOWN = "0" * 8


def make_mark() -> str:
    """Return a name of this process that nobody can guess."""
    pid = os.getpid()
    owner = f"{pid}-{_read_start(pid) or 0}-{_read_boot()}-{_read_space()}"
    return f"{owner}-{os.urandom(8).hex()}"


def is_abandoned(mark: str, changed: float) -> bool:
    """Tell whether a name is one of :func:`make_mark`, by a process that is gone.

    A process of another pid namespace, which may share our folders, cannot be seen from here: what
    it made is left alone until the next boot. So is what was changed since this boot by a process
    of another one, for that is another host, which shares a network file system.

    :param changed: When what has the name was changed, as ``st_ctime`` says.
    """
    match = re.fullmatch(_MARK, mark)
    if match is None:
        return False
    pid, start, boot, space = match.groups()
    if boot != _read_boot():
        return _UNKNOWN not in (boot, _read_boot()) and changed < _find_boot()
    return space == _read_space() and start != _read_start(int(pid))


def _read_start(pid: int) -> str:
    """Return when a process was started, in ticks since the boot; nothing if it has ended."""
    try:
        state, *fields = read_kernel_text(f"/proc/{pid}/stat").rpartition(") ")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in "ZX" else fields[18]


def _find_boot() -> float:
    """Return when this host was booted, in seconds since the epoch."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


@lru_cache(maxsize=None)
def _read_boot() -> str:
    """Return the short form of what names this boot."""
    try:
        return read_kernel_text(_BOOT_ID)[:8]
    except (OSError, ValueError):
        return _UNKNOWN


@lru_cache(maxsize=None)
def _read_space() -> str:
    """Return what names the pid and time namespaces of this process."""
    return f"{zlib.crc32(' '.join(map(read_link, _SPACES)).encode()):08x}"


def read_link(path: str) -> str:
    """Return where a link leads; nothing where it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""
