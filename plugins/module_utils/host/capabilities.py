# SPDX-License-Identifier: BSD-2-Clause
"""Tell what a process may do beside root's name: the capabilities(7) that it has in effect."""

from __future__ import annotations

import os
import re
from functools import lru_cache

from .door import read_kernel_text

_IPC_LOCK, _SYS_RESOURCE = 14, 24  # Of linux/capability.h.
_EVERYONE = ["0", "0", "4294967295"]


def may_lock_memory(pid: int, proc: str = "/proc") -> bool:
    """Tell whether a process has CAP_IPC_LOCK, so that memlock does not bind it."""
    return _has(_IPC_LOCK, str(pid), proc)


@lru_cache(maxsize=None)
def may_raise_limits(proc: str = "/proc") -> bool:
    """Tell whether sessions that this process opens may raise hard limits.

    Whoever is not root opens none, and those that others open are root's. In a user namespace
    of its own a process may not, whatever capabilities it has there (``do_prlimit()``).
    """
    if os.geteuid() != 0:
        return True
    try:
        own = read_kernel_text(f"{proc}/self/uid_map").split() != _EVERYONE
    except OSError:
        own = False
    return not own and _has(_SYS_RESOURCE, "self", proc)


def _has(capability: int, pid: str, proc: str) -> bool:
    try:
        text = read_kernel_text(f"{proc}/{pid}/status")
        found = re.search(r"^CapEff:\s*([0-9a-f]+)", text, re.MULTILINE)
    except OSError:
        return False
    return bool(found and int(found[1], 16) >> capability & 1)
