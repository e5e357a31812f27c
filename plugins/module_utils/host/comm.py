# SPDX-License-Identifier: BSD-2-Clause
"""Read the name of a process."""

from __future__ import annotations

from .door import read_kernel_text


def read_comm(pid: int | str, proc: str = "/proc") -> str:
    """Return what /proc/PID/comm says, and nothing of a process that has ended."""
    try:
        return read_kernel_text(f"{proc}/{pid}/comm").strip()
    except OSError:
        return ""
