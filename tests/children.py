# SPDX-License-Identifier: GPL-3.0-or-later
"""The children of the tests' own process: other tests of the same process may have some too."""

from __future__ import annotations

from pathlib import Path


def read_children() -> set[int]:
    """Return the process numbers, of those too that have ended and are not reaped."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(number) for task in tasks for number in task.read_text().split()}
