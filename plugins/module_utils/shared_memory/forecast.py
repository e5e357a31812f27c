# SPDX-License-Identifier: BSD-2-Clause
"""Foretell /dev/shm of an image."""

from __future__ import annotations

from ..core.finding import FAIL, PASS, UNKNOWN
from ..core.forecast import Forecast
from .causes import ShmFacts, find_shm_causes
from .model import find_lines


def foretell_shm(size: int, fstab: str) -> Forecast:
    """Return what fstab gives /dev/shm on a host whose memory is not known."""
    least, most = (find_lines(fstab, memory) for memory in (0, 2**60))
    if not least or least[0].value != most[0].value:
        return Forecast(UNKNOWN, reason="its size depends on the memory of the host")
    line = least[0]
    if int(line.value) >= size:
        return Forecast(PASS, line.value, line)
    causes = tuple(find_shm_causes(size, ShmFacts(int(line.value), fstab, 0)))
    return Forecast(FAIL, line.value, line, causes)
