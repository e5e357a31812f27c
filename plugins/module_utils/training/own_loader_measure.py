# SPDX-License-Identifier: BSD-2-Clause
"""Let a loader make some batches in a child, and see what a batch and a worker take."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from functools import partial

from ..host.children import run_in_children
from ..host.door import read_kernel_text
from .loader import WORKER_MEMORY

_DEEPEST = 50
_KIB = 1024


def measure_loader(loader: object, batches: int, seconds: float) -> dict[str, object]:
    """Return keys of the policy's section ``training``, as the loader has or shows them.

    :raises RuntimeError: If it makes no batch, or not in time.
    """
    [report] = run_in_children([partial(_look, loader, batches)], seconds)
    found = report.value
    trouble = report.problem or found.pop("error", "")
    if trouble:
        raise RuntimeError(f"the loader was not measured: {trouble}")
    return {**_read_options(loader), **found}


def _read_options(loader: object) -> dict[str, object]:
    """Return what a loader says of itself, by the names of torch's DataLoader."""
    context = getattr(loader, "multiprocessing_context", None) or multiprocessing
    found: dict[str, object] = {
        "workers": getattr(loader, "num_workers", 0),
        "start_method": context.get_start_method(),
        "epochs": 1 if getattr(loader, "persistent_workers", False) else 2,
    }
    if getattr(loader, "prefetch_factor", None):
        found["prefetch"] = loader.prefetch_factor  # type: ignore[attr-defined]
    torch = sys.modules.get("torch.multiprocessing")
    if torch:
        found["sharing"] = torch.get_sharing_strategy()
    return found


def _look(loader: object, batches: int) -> dict[str, object]:
    """Take batches, and return the most that one holds. Runs in a child."""
    try:
        return _take(loader, batches)
    except Exception as exc:  # The loader is the caller's: it may raise whatever it likes.
        return {"error": f"{type(exc).__name__}: {exc}"[:500]}
    finally:
        for pid in _list_children():
            os.kill(pid, signal.SIGKILL)


def _take(loader: object, batches: int) -> dict[str, object]:
    most, largest, count = 0, 0, 0
    made = iter(loader)  # type: ignore[call-overload]
    for batch in made:
        sizes = list(_weigh(batch, _DEEPEST))
        most, largest, count = max(most, len(sizes)), max(largest, sum(sizes)), count + 1
        if count >= batches:
            break
    memory = max([0, *map(_read_private, _list_children())])  # They live as long as what made it.
    del made
    if not count:
        return {"error": "it makes no batch"}
    own = WORKER_MEMORY["fork"]
    return {
        "tensors_per_batch": max(most, 1),
        "batch_size": f"{largest}B",
        "worker_memory": f"{max(memory - own, 0)}B",
    }


def _weigh(value: object, depth: int) -> Iterator[int]:
    """Yield the bytes of each tensor in a batch; whatever is none travels in a pipe."""
    if depth and hasattr(value, "numel") and hasattr(value, "element_size"):
        yield int(value.numel()) * int(value.element_size())
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _weigh(one, depth - 1) if depth else ()
    elif isinstance(value, (list, tuple, set)):
        for one in value:
            yield from _weigh(one, depth - 1) if depth else ()


def _list_children() -> list[int]:
    own = os.getpid()
    return [int(pid) for pid in read_kernel_text(f"/proc/self/task/{own}/children").split()]


def _read_private(pid: int) -> int:
    """Return the bytes of a process that it shares with nobody."""
    try:
        text = read_kernel_text(f"/proc/{pid}/smaps_rollup")
    except OSError:
        return 0
    return sum(int(size) * _KIB for size in re.findall(r"^Private_\w+:\s+([0-9]+) kB", text, re.M))
