# SPDX-License-Identifier: GPL-3.0-or-later
"""A fix names what else would do, with the number that it then needs."""

from __future__ import annotations

import pytest
from mlhost_limits.training.loader import format_size
from mlhost_limits.training.model_states import find_floor
from mlhost_limits.training.policy import DeepSpeed, Training
from mlhost_limits.training.ways_out import (
    fetch_less,
    keep_no_states,
    share_by_name,
    spread_otherwise,
    tell_raise,
)

GIB = 2**30
SPREAD = DeepSpeed(3, 7 * 10**9, 131 * 10**6, 8, 1, True, True)


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (
            Training(workers=2, tensors_per_batch=4, batch_size=2**20),
            ", or share by name (sharing file_system), which needs 18 files and 7.2 MiB of"
            " /dev/shm",
        ),
        (
            Training(workers=2, tensors_per_batch=4),
            ", or share by name (sharing file_system), which needs 18 files and as much of"
            " /dev/shm",
        ),
        (Training(workers=2, sharing="file_system"), ""),
        (Training(workers=2, start_method="spawn"), ""),
        (Training(workers=0), ""),
    ],
)
def test_tensors_can_be_shared_by_name(run: Training, told: str) -> None:
    assert share_by_name(run) == told


def test_less_can_be_fetched_ahead() -> None:
    run = Training(workers=2, prefetch=4, tensors_per_batch=1, batch_size=2**20)
    assert fetch_less(run) == ", or prefetch 1 batch, which needs 5.1 MiB"
    assert fetch_less(run._replace(prefetch=1)) == ""


def test_a_model_is_spread_otherwise_where_that_fits() -> None:
    told = spread_otherwise(SPREAD, 100 * GIB)
    alone = find_floor(SPREAD._replace(offload_optimizer=False, offload_parameters=False))
    assert f"; ZeRO-3 without offload needs {format_size(alone.node)}, and" in told
    assert "; on 2 nodes it needs 88.0 GiB, and 499.7 MiB of each GPU" in told
    assert told.count("nodes it needs") == 1, "the fewest are told"
    assert "ZeRO-2" not in told, "it needs more than is free"
    assert "; ZeRO-2 needs 312.9 GiB, and 13.0 GiB of each GPU" in spread_otherwise(
        SPREAD, 400 * GIB
    )
    assert spread_otherwise(SPREAD, 0) == ""


def test_every_other_stage_is_told_where_it_just_fits() -> None:
    both = spread_otherwise(SPREAD, 10**15)
    assert all(f"; ZeRO-{stage} without offload" in both for stage in (2, 3))
    second = SPREAD._replace(stage=2, largest_layer=0, offload_parameters=False)
    alone = spread_otherwise(second, 10**15)
    assert ("ZeRO-3" in alone, "; ZeRO-2 without offload" in alone) == (False, True)
    free = find_floor(SPREAD._replace(stage=2)).node
    assert "; ZeRO-2 needs" in spread_otherwise(SPREAD, free)
    assert "; ZeRO-2 needs" not in spread_otherwise(SPREAD, free - 1)
    assert "without" not in spread_otherwise(SPREAD._replace(offload_optimizer=False), 10**15)
    assert "; ZeRO-3 needs" in spread_otherwise(SPREAD._replace(stage=2), 10**15)


def test_a_model_is_spread_over_64_nodes_at_most() -> None:
    free = find_floor(SPREAD._replace(nodes=64)).node
    assert spread_otherwise(SPREAD, free).startswith("; on 64 nodes it needs")
    assert "on 64 nodes" not in spread_otherwise(SPREAD, free - 1)
    assert "on 65 nodes" not in spread_otherwise(SPREAD, free - 1)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("self", "ulimit -l 65 where it starts"),
        ("session:alice@sshd", '"alice - memlock 65" in limits.conf'),
        ("service:train.service", "LimitMEMLOCK=66000 in train.service"),
        ("container:docker/x", "--ulimit memlock=66000"),
        ("new-container:docker", "--ulimit memlock=66000"),
        ("job:slurm", "LimitMEMLOCK=66000 in slurmd.service"),
        ("pod:train", "on the node"),
    ],
)
def test_a_limit_is_raised_where_the_run_starts(place: str, told: str) -> None:
    assert tell_raise(place, "memlock", 66000) == told


def test_workers_that_are_spawned_keep_no_states() -> None:
    run = Training(workers=2, deepspeed=SPREAD, ranks_per_node=8)
    assert (
        keep_no_states(run)
        == ", or start workers by spawn, or pin what is offloaded (pin_memory), which takes 144.4 GiB less"
    )
    assert keep_no_states(run._replace(start_method="spawn")) == ""
    assert keep_no_states(run._replace(workers=0)) == ""
    small = SPREAD._replace(parameters=10**6, largest_layer=10**5)
    assert keep_no_states(run._replace(deepspeed=small)) == ""


@pytest.mark.parametrize(
    ("parameters", "told"),
    [(2**25, ""), (2**25 + 1, "takes 22 B less")],
)
def test_what_spawning_spares_is_more_than_it_takes(parameters: int, told: str) -> None:
    model = SPREAD._replace(parameters=parameters, largest_layer=1)
    told_ways = keep_no_states(Training(workers=5, deepspeed=model))
    assert told_ways.rpartition(", which ")[2] == told
