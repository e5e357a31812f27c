# SPDX-License-Identifier: BSD-2-Clause
"""Let a loader make some batches in a child, and see what a batch and a worker take."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

from ..host.children import run_in_children
from .loader import HEAP, WORKER_MEMORY
from .loader_hook_measure import find_own, list_children, read_options, weigh

_TUNED = (-1, -3)
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)."""


def measure_loader(loader: object, batches: int, seconds: float) -> dict[str, object]:
    """Return keys of the policy's section ``training``, as the loader has or shows them.

    :raises RuntimeError: If it makes no batch, or not in time.
    """
    [report] = run_in_children([partial(_look, loader, batches)], seconds)
    found = report.value
    trouble = report.problem or found.pop("error", "")
    if trouble:
        raise RuntimeError(f"the loader was not measured: {trouble}")
    options = read_options(loader)
    memory = found.pop("memory")
    own = WORKER_MEMORY[options.get("start_method") or "fork"]
    return {**options, **found, "worker_memory": f"{max(memory - own, 0)}B"}


def _look(loader: object, batches: int) -> dict[str, object]:
    """Take batches, and return the most that one holds. Runs in a child."""
    try:
        return _take(loader, batches)
    except Exception as exc:  # The loader is the caller's: it may raise whatever it likes.
        return {"error": f"{type(exc).__name__}: {exc}"[:500]}
    finally:
        for pid in list_children():
            os.kill(pid, signal.SIGKILL)


def _give_back() -> None:
    """Have malloc(3) return what workers free: what it would keep is counted elsewhere."""
    import ctypes

    os.environ[HEAP[0]] = HEAP[1]  # Of those that do not begin as a copy.
    tune: Any = getattr(ctypes.CDLL(None), "mallopt", None)
    for option in _TUNED if tune else ():
        tune(option, int(HEAP[1]))


def _take(loader: object, batches: int) -> dict[str, object]:
    most, largest, count = 0, 0, 0
    _give_back()
    made = iter(loader)  # type: ignore[call-overload]
    for batch in made:
        sizes = list(weigh(batch))
        most, largest, count = max(most, len(sizes)), max(largest, sum(sizes)), count + 1
        if count >= batches:
            break
    memory = find_own(list_children())  # They live as long as what made it.
    del made
    if not count:
        return {"error": "it makes no batch"}
    return {"tensors_per_batch": max(most, 1), "batch_size": f"{largest}B", "memory": memory}
