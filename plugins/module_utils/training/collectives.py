# SPDX-License-Identifier: BSD-2-Clause
"""What the process groups of a run take of each process that trains.

Measured with torch 2.13 and gloo, on one host: each group is a connection to every rank and three
threads; the first rank, whose store the others ask, has most. Of NCCL nothing was measured: its
documents say that 144 ranks in 16 groups take more than 32,768 descriptors each.
"""

from __future__ import annotations

from .policy import Training

OF_STORE, OF_CLIENT = 10, 1
"""Descriptors of the first rank for the store, beside one for each rank; and of any other."""
_OF_GROUP = 3
_OF_PEER = {"gloo": 1, "nccl": 15}
_THREADS_OF_GROUP, _MAPPED_BY_GROUP, _GROUPS_OF_DEEPSPEED = 3, 12, 2


def find_world(run: Training) -> int:
    """Return how many processes train together, on all hosts."""
    nodes = run.deepspeed.nodes if run.deepspeed else 1
    return max(run.world_size or 0, run.ranks_per_node * nodes)


def find_groups(run: Training) -> int:
    """Return the process groups; who starts several processes joins them in one.

    Measured: DeepSpeed 0.19.8 makes one of a single process too, and one more for its states.
    """
    if run.groups is not None:
        return run.groups
    return _GROUPS_OF_DEEPSPEED if run.deepspeed else int(find_world(run) > 1)


def find_backend(run: Training) -> str:
    """Return what the processes talk through."""
    return run.backend or ("nccl" if run.gpus or run.deepspeed else "gloo")


def count_of_groups(run: Training) -> int:
    """Return the descriptors that the first rank has open for its groups; no rank has more."""
    world, groups = find_world(run), find_groups(run)
    each = _OF_GROUP + _OF_PEER[find_backend(run)] * world
    return OF_STORE + world + groups * each if groups else 0


def count_threads_of_groups(run: Training) -> int:
    """Return the threads of all ranks of a node for their groups; NCCL's are not known."""
    others = (run.ranks_per_node - 1) * max(count_threads_of_rank(run) - 1, 0)
    return count_threads_of_rank(run) + others


def count_threads_of_rank(run: Training) -> int:
    """Return the threads of the first rank, which has the store's as well."""
    groups = find_groups(run) if find_backend(run) == "gloo" else 0
    return 1 + _THREADS_OF_GROUP * groups if groups else 0


def count_mapped_by_groups(run: Training) -> int:
    """Return the mappings of a process for its groups."""
    return _MAPPED_BY_GROUP * find_groups(run)
