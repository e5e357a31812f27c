# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of drawn runs: how many were told wrongly, and how far each forecast was off."""

from __future__ import annotations

from collections import Counter
from typing import Any

WITHIN = {
    "descriptors": (0, 2),
    "tasks": (-0.05, 0.05),
    "mappings": (-0.05, 0.05),
    "shared_memory": (0, 0.05),
    "memory": (0, 0.3),
    "address_space": (0, 0.3),
}
"""How far a forecast may be above what was seen: a number of descriptors, a part of all else."""


def is_within(name: str, off: float) -> bool:
    """Tell whether a forecast is as near as is wanted."""
    least, most = WITHIN[name]
    return least <= off <= most


def sum_up(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all runs; of each resource the least and the most that it was off."""
    off: dict[str, list[float]] = {}
    for row in rows:
        for name, number in row["off"].items():
            off.setdefault(name, []).append(number)
    return {
        "runs": len(rows),
        "tried": 2 * len(rows),
        "wrong_go": sum(row["wrong_go"] for row in rows),
        "wrong_no_go": sum(row["wrong_no_go"] for row in rows),
        "by_limit": dict(Counter(row["limit"] for row in rows)),
        "by_library": dict(Counter(row["library"] for row in rows)),
        "off": {name: [min(numbers), max(numbers)] for name, numbers in off.items()},
        "seen": {name: len(numbers) for name, numbers in off.items()},
        "within": {
            name: sum(is_within(name, number) for number in numbers)
            for name, numbers in off.items()
        },
    }
