# SPDX-License-Identifier: BSD-2-Clause
"""Read the name of a process."""

from __future__ import annotations


def read_comm(pid: int | str, proc: str = "/proc") -> str:
    """Return what /proc/PID/comm says, and nothing of a process that has ended."""
    try:
        with open(f"{proc}/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
