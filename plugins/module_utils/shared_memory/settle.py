# SPDX-License-Identifier: BSD-2-Clause
"""Give /dev/shm another size while it is mounted; what is in it stays."""

from __future__ import annotations

from ..host.program import run_program
from .model import SHM

_TIME_LIMIT = 120.0


def remount_shm(size: int) -> str:
    """Remount /dev/shm; return why that failed, or nothing."""
    code, text = run_program(["mount", "-o", f"remount,size={size}", SHM], _TIME_LIMIT)
    return f"{SHM} could not be remounted: {' '.join(text.split())}" if code else ""
