# SPDX-License-Identifier: BSD-2-Clause
"""Name what a run may do instead, each with the number that it then needs."""

from __future__ import annotations

from collections.abc import Iterator

from .loader import (
    count_descriptors,
    count_memory,
    count_shared_memory,
    format_size,
    passes_descriptors,
)
from .model_states import find_floor, find_kept_states
from .policy import SELF, DeepSpeed, Training

_MOST_NODES = 64
_OPTION_OF = {"memlock": "LimitMEMLOCK", "as": "LimitAS", "data": "LimitDATA"}
_LETTER_OF = {"memlock": "l", "as": "v", "data": "d"}


def share_by_name(run: Training) -> str:
    """Return what sharing tensors by name takes instead of descriptors; nothing if it is done."""
    if not run.workers or not passes_descriptors(run) or run.start_method != "fork":
        return ""
    other = run._replace(sharing="file_system")
    files = count_descriptors(other, run.workers)
    told = f", or share by name (sharing file_system), which needs {files} files"
    if run.batch_size is None:
        return f"{told} and as much of /dev/shm"
    return f"{told} and {format_size(count_shared_memory(other, run.workers))} of /dev/shm"


def fetch_less(run: Training) -> str:
    """Return what the least prefetching takes of /dev/shm; nothing where it is done."""
    if not run.workers or run.prefetch == 1:
        return ""
    needed = count_shared_memory(run._replace(prefetch=1), run.workers)
    return f", or prefetch 1 batch, which needs {format_size(needed)}"


def keep_no_states(run: Training) -> str:
    """Return what lets no worker keep model states; nothing where none does."""
    if not run.workers or not find_kept_states(run):
        return ""
    other = run._replace(start_method="spawn")
    spared = count_memory(run, run.workers) - count_memory(other, run.workers)
    if spared <= 0:
        return ""
    less = f"{format_size(spared)} less"
    return f", or start workers by spawn, or pin what is offloaded (pin_memory), which takes {less}"


def spread_otherwise(run: DeepSpeed, free: int) -> str:
    """Return the ways to spread a model's states that need no more of a node than is free.

    Each has what it takes of the node and of each GPU, by DeepSpeed's own estimate.
    """
    found = [(name, find_floor(other)) for name, other in _spread(run)]
    nodes = ((f"on {n} nodes it", find_floor(run._replace(nodes=n))) for n in _list_nodes(run))
    found += [(name, floor) for name, floor in nodes if floor.node <= free][:1]
    return "".join(
        f"; {name} needs {format_size(floor.node)}, and {format_size(floor.gpu)} of each GPU"
        for name, floor in found
        if floor.node <= free
    )


def _list_nodes(run: DeepSpeed) -> range:
    return range(run.nodes + 1, _MOST_NODES + 1)


def _spread(run: DeepSpeed) -> Iterator[tuple[str, DeepSpeed]]:
    """Yield the other stage, and less offload; stage 3 where the largest layer is known."""
    if run.largest_layer:
        yield f"ZeRO-{5 - run.stage}", run._replace(stage=5 - run.stage)
    if run.offload_optimizer:
        for stage in (2, 3) if run.largest_layer else (run.stage,):
            alone = run._replace(stage=stage, offload_optimizer=False)
            yield f"ZeRO-{stage} without offload", alone


def tell_raise(place: str, item: str, size: int) -> str:
    """Return how a limit of memory is raised for who will run; bytes become KiB of ulimit."""
    kind, _colon, name = place.partition(":")
    if place == SELF:
        return f"ulimit -{_LETTER_OF[item]} {-(-size // 1024)} where it starts"
    if kind == "service":
        return f"{_OPTION_OF[item]}={size} in {name}"
    if kind == "session":
        user = name.rpartition("@")[0]
        return f'"{user} - {item} {-(-size // 1024)}" in limits.conf'
    if kind in ("container", "new-container"):
        return f"--ulimit {item}={size}"
    return f"{_OPTION_OF[item]}={size} in slurmd.service" if kind == "job" else "on the node"
