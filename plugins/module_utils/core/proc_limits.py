# SPDX-License-Identifier: BSD-2-Clause
"""Read the text of /proc/PID/limits: the limits a process really runs under.

Format: ``proc_pid_limits()`` in the kernel's ``fs/proc/base.c``; a label of up to 25
columns, then soft, hard and unit. Sizes are in bytes.
"""

from __future__ import annotations

from functools import lru_cache

from .quote import quote
from .rlimit import ITEMS, RLIMITS, UNLIMITED, Rlimit

_LABEL_WIDTH = 26


@lru_cache(maxsize=1024)  # Thousands of processes share a few dozen sets of limits.
def parse_proc_limits(text: str) -> dict[str, Rlimit]:
    """Return every resource limit by its limits.conf name, in the kernel's unit.

    :param text: The whole file. Rows of limits this library does not know are skipped.
    :returns: The same mapping for the same text, so nobody may change it.
    :raises ValueError: If a row is missing or its values cannot be read.
    """
    rows = {line[: _LABEL_WIDTH - 1].rstrip(): line[_LABEL_WIDTH:] for line in text.splitlines()}
    return {name: _parse_row(ITEMS[name].label, rows) for name in RLIMITS}


def _parse_row(label: str, rows: dict[str, str]) -> Rlimit:
    values = rows.get(label, "").split()[:2]
    if len(values) < 2:
        raise ValueError(f"no row {label!r} in /proc/PID/limits")
    return Rlimit(*(_parse_value(value, label) for value in values))


def _parse_value(text: str, label: str) -> int:
    if text == "unlimited":
        return UNLIMITED
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{label}: {quote(text)} is not a number or 'unlimited'")
    return int(text)
