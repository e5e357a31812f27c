# SPDX-License-Identifier: GPL-3.0-or-later
"""What process groups take of each process that trains."""

from __future__ import annotations

import pytest
from mlhost_limits.training.collectives import (
    count_mapped_by_groups,
    count_of_groups,
    count_threads_of_groups,
    count_threads_of_rank,
    find_backend,
    find_groups,
    find_world,
)
from mlhost_limits.training.loader import count_descriptors
from mlhost_limits.training.model_states import find_floor, find_model_states
from mlhost_limits.training.policy import DeepSpeed, Gpus, Training


@pytest.mark.parametrize(
    ("run", "needed"),
    [
        (Training(), 0),
        # Measured with torch 2.13 and gloo: 13 + 2W in the first rank, 3 + W for each more.
        (Training(ranks_per_node=2), 17),
        (Training(ranks_per_node=8), 29),
        (Training(ranks_per_node=8, groups=4), 62),
        (Training(groups=1), 15),
        (Training(groups=1, backend="nccl"), 10 + 1 + 3 + 15),
        (Training(ranks_per_node=8, groups=0), 0),
        (Training(ranks_per_node=8, world_size=32), 77),
        # By the documents of NCCL: 144 ranks and 16 groups take more than 32,768.
        (Training(ranks_per_node=8, world_size=144, groups=16, backend="nccl"), 34762),
    ],
)
def test_how_many_descriptors_groups_take(run: Training, needed: int) -> None:
    assert count_of_groups(run) == needed
    assert count_descriptors(run, 3) == count_descriptors(run._replace(groups=0), 3) + needed


@pytest.mark.parametrize(
    ("run", "world", "groups", "backend"),
    [
        (Training(), 1, 0, "gloo"),
        (Training(ranks_per_node=4), 4, 1, "gloo"),
        (Training(ranks_per_node=4, gpus=Gpus(4)), 4, 1, "nccl"),
        (Training(ranks_per_node=4, gpus=Gpus(4), backend="gloo"), 4, 1, "gloo"),
        (Training(world_size=2), 2, 1, "gloo"),
        # Less than this host starts alone is not a number of all.
        (Training(ranks_per_node=8, world_size=2), 8, 1, "gloo"),
        (Training(ranks_per_node=8, deepspeed=DeepSpeed(nodes=4)), 32, 2, "nccl"),
        (Training(deepspeed=DeepSpeed()), 1, 2, "nccl"),
        (Training(deepspeed=DeepSpeed(), groups=1), 1, 1, "nccl"),
    ],
)
def test_who_talks_to_whom(run: Training, world: int, groups: int, backend: str) -> None:
    assert (find_world(run), find_groups(run), find_backend(run)) == (world, groups, backend)


@pytest.mark.parametrize(
    ("run", "first", "all_of_them", "mapped"),
    [
        (Training(), 0, 0, 0),
        (Training(groups=1), 4, 4, 12),
        (Training(ranks_per_node=3), 4, 4 + 2 * 3, 12),
        (Training(ranks_per_node=3, groups=2), 7, 7 + 2 * 6, 24),
        (Training(ranks_per_node=3, groups=2, backend="nccl"), 0, 0, 24),
    ],
)
def test_a_group_has_threads_in_each_rank_and_the_store_has_one(
    run: Training, first: int, all_of_them: int, mapped: int
) -> None:
    assert count_threads_of_rank(run) == first
    assert count_threads_of_groups(run) == all_of_them
    assert count_mapped_by_groups(run) == mapped


def test_who_trains_on_cpus_has_there_what_a_gpu_would_have() -> None:
    spread = DeepSpeed(3, 10**6, 10**5, 2, 1)
    floor = find_floor(spread)
    assert find_model_states(Training(ranks_per_node=2, deepspeed=spread)) == floor.node
    on_cpus = Training(ranks_per_node=2, deepspeed=spread, backend="gloo")
    assert find_model_states(on_cpus) == floor.node + 2 * floor.gpu
    assert find_model_states(Training()) == 0
