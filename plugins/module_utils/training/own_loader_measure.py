# SPDX-License-Identifier: BSD-2-Clause
"""Let a loader make some batches in a child, and see what a batch and a worker take."""

from __future__ import annotations

import os
import signal
from functools import partial

from ..host.children import run_in_children
from .loader import WORKER_MEMORY
from .loader_hook_measure import list_children, read_options, read_private, weigh


def measure_loader(loader: object, batches: int, seconds: float) -> dict[str, object]:
    """Return keys of the policy's section ``training``, as the loader has or shows them.

    :raises RuntimeError: If it makes no batch, or not in time.
    """
    [report] = run_in_children([partial(_look, loader, batches)], seconds)
    found = report.value
    trouble = report.problem or found.pop("error", "")
    if trouble:
        raise RuntimeError(f"the loader was not measured: {trouble}")
    return {**read_options(loader), **found}


def _look(loader: object, batches: int) -> dict[str, object]:
    """Take batches, and return the most that one holds. Runs in a child."""
    try:
        return _take(loader, batches)
    except Exception as exc:  # The loader is the caller's: it may raise whatever it likes.
        return {"error": f"{type(exc).__name__}: {exc}"[:500]}
    finally:
        for pid in list_children():
            os.kill(pid, signal.SIGKILL)


def _take(loader: object, batches: int) -> dict[str, object]:
    most, largest, count = 0, 0, 0
    made = iter(loader)  # type: ignore[call-overload]
    for batch in made:
        sizes = list(weigh(batch))
        most, largest, count = max(most, len(sizes)), max(largest, sum(sizes)), count + 1
        if count >= batches:
            break
    memory = max([0, *map(read_private, list_children())])  # They live as long as what made it.
    del made
    if not count:
        return {"error": "it makes no batch"}
    own = WORKER_MEMORY["fork"]
    return {
        "tensors_per_batch": max(most, 1),
        "batch_size": f"{largest}B",
        "worker_memory": f"{max(memory - own, 0)}B",
    }
