# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of each run: its whole result, by the name of its file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from .cases import CASES
from .walk import Walk, walk

Record = Callable[[Path], Any]


def record_walk(told: Walk) -> dict[str, Any]:
    """Return what all runs of a section told, and what the stand-ins were told."""
    steps = {name: step for name, step in told._asdict().items() if name != "before"}
    return {name: {"told": step.told, "calls": step.calls} for name, step in steps.items()}


def _record_section(name: str, folder: Path) -> Any:
    return record_walk(walk(name, folder))


RECORDS: dict[str, Record] = {name: partial(_record_section, name) for name in CASES}
