# SPDX-License-Identifier: GPL-3.0-or-later
"""What a loader needs, how many of its workers fit, and the floors of DeepSpeed."""

from __future__ import annotations

import itertools

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.training.loader import (
    Bound,
    bound_by_cpus,
    bound_by_descriptors,
    bound_by_memory,
    bound_by_shared_memory,
    count_addresses,
    count_descriptors,
    count_mappings,
    count_memory,
    count_shared_memory,
    find_worker_memory,
    format_size,
    keeps_heap,
    plan_workers,
    returns_memory,
)
from mlhost_limits.training.model_states import Floor, find_floor, find_kept_states
from mlhost_limits.training.policy import DeepSpeed, Gpus, Training

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("run", "workers", "needed"),
    [
        # Measured with torch 2.13: 160 fails, 161 passes.
        (Training(prefetch=4, tensors_per_batch=4), 8, 161),
        # The file_system strategy passes names, and no descriptors; each worker has a manager of them.
        (Training(prefetch=4, tensors_per_batch=4, sharing="file_system"), 8, 48),
        # A batch that the program keeps costs its tensors.
        (Training(prefetch=4, tensors_per_batch=4, hold=3), 8, 173),
        # Measured: 94 in the first epoch, and 109 in those after it.
        (Training(prefetch=4, tensors_per_batch=16, epochs=1), 1, 94),
        (Training(prefetch=4, tensors_per_batch=16), 1, 110),
        # A worker whose data set keeps files open needs more than the process that trains.
        (Training(prefetch=2, tensors_per_batch=1, dataset_files=500), 1, 518),
        (Training(dataset_files=7), 0, 12),
        (Training(), 0, 5),
    ],
)
def test_how_many_descriptors(run: Training, workers: int, needed: int) -> None:
    assert count_descriptors(run, workers) == needed


LOADED = Training(
    prefetch=2, tensors_per_batch=2, batch_size=2 * MIB, epochs=1, base=4, loaders=2, hold=1
)


@pytest.mark.parametrize(
    ("run", "descriptors", "shared_memory"),
    [
        # Measured with torch 2.13, 3 workers: 58 and 22 batches, of which a loader's workers
        # begin with 6; who is started anew begins with none; of a second epoch's there are 2 more.
        (LOADED, 60, 22),
        (LOADED._replace(start_method="spawn"), 60, 16),
        (LOADED._replace(epochs=2), 60, 24),
        (LOADED._replace(loaders=1, epochs=2, hold=2), 38, 13),
    ],
)
def test_two_loaders_and_what_workers_begin_with(
    run: Training, descriptors: int, shared_memory: int
) -> None:
    locks = (run.loaders + (run.epochs > 1)) * (8 + 3 * 3) * 4096
    assert count_descriptors(run, 3) == descriptors
    assert count_shared_memory(run, 3) == shared_memory * (2 * MIB + 2 * 4096) + locks


@pytest.mark.parametrize(
    ("run", "workers", "needed"),
    [
        # Measured with torch 2.13 within three: 380, 498, 435, 385, 560, and 398 with two ranks.
        (Training(tensors_per_batch=2), 2, 380),
        (Training(tensors_per_batch=8, prefetch=3, hold=3), 4, 498),
        (Training(tensors_per_batch=2, hold=1, loaders=2), 3, 432),
        (Training(tensors_per_batch=2, library="accelerate"), 1, 387),
        (Training(tensors_per_batch=2, library="transformers"), 8, 560),
        (Training(tensors_per_batch=2, ranks_per_node=2), 2, 392),
        (Training(tensors_per_batch=2, gpus=Gpus()), 0, 1350),
    ],
)
def test_how_many_mappings(run: Training, workers: int, needed: int) -> None:
    assert count_mappings(run, workers) == needed


@pytest.mark.parametrize(
    ("run", "workers", "needed"),
    [
        (Training(), 0, 700),
        (Training(library="trl"), 3, 2100 + 3 * 66),
        # Of gloo three threads in each group, and the store's.
        (Training(ranks_per_node=2, groups=2), 1, 700 + 8 * 66),
        (Training(batch_size=MIB, worker_memory=9 * MIB, prefetch=3), 2, 700 + 132 + 8 + 9),
    ],
)
def test_how_much_address_space(run: Training, workers: int, needed: int) -> None:
    assert count_addresses(run, workers) == needed * MIB


def test_the_largest_number_of_workers_that_was_measured() -> None:
    run = Training(prefetch=2, tensors_per_batch=4)  # L 256: 20 work, 21 fail.
    assert bound_by_descriptors(run, 256) == Bound("nofile", 20, "soft limit 256")


GRID = [
    Training(
        prefetch=prefetch,
        tensors_per_batch=tensors,
        hold=hold,
        dataset_files=files,
        sharing=sharing,
        batch_size=MIB,
        ranks_per_node=ranks,
        pinned_buffer=MIB,
    )
    for prefetch, tensors, hold, files, sharing, ranks in itertools.product(
        (1, 4), (1, 8), (0, 3), (0, 9), ("file_descriptor", "file_system"), (1, 8)
    )
]


@pytest.mark.parametrize("workers", [1, 2, 7, 48])
def test_a_bound_is_the_largest_number_whose_need_is_met(workers: int) -> None:
    for run in GRID:
        for count, bound in (
            (count_descriptors, bound_by_descriptors),
            (count_shared_memory, bound_by_shared_memory),
            (count_memory, lambda run, free: bound_by_memory(run, free, "the host")),
        ):
            needed = count(run, workers)
            assert bound(run, needed).most == workers
            assert bound(run, needed - 1).most == workers - 1


def test_no_worker_needs_no_shared_memory() -> None:
    assert count_shared_memory(Training(batch_size=1, tensors_per_batch=1), 0) == 0


@pytest.mark.parametrize(
    ("run", "workers", "needed"),
    [
        (Training(), 4, (160 + 4 * 16) * MIB),
        (
            Training(start_method="spawn", worker_memory=MIB, ranks_per_node=2),
            4,
            (320 + 8 * 161) * MIB,
        ),
        (Training(pinned_buffer=3, ranks_per_node=2), 0, 320 * MIB + 6),
        # Of each library its own; a manager of names; three batches of a worker, and all shared.
        (Training(library="accelerate"), 1, 221 * MIB),
        (Training(library="transformers", sharing="file_system"), 1, 351 * MIB),
        (
            Training(batch_size=MIB - 4096, tensors_per_batch=1, prefetch=2),
            1,
            (160 + 16 + 3 + 5) * MIB - 3 * 4096 + 2 * 11 * 4096,
        ),
    ],
)
def test_how_much_memory(run: Training, workers: int, needed: int) -> None:
    assert count_memory(run, workers) == needed


def test_too_little_memory_for_one_worker() -> None:
    assert bound_by_memory(Training(), 175 * MIB, "the host") == Bound(
        "memory", 0, "175.0 MiB left of the host"
    )


@pytest.mark.parametrize(
    ("cpus", "ranks", "most"), [(8, 1, 8), (8, 3, 2), (1.5, 1, 1), (0.5, 1, 1), (4, 8, 1)]
)
def test_how_many_workers_have_a_cpu(cpus: float, ranks: int, most: int) -> None:
    bound = bound_by_cpus(Training(ranks_per_node=ranks), cpus, "affinity")
    assert bound == Bound("CPUs", most, "affinity")


@pytest.mark.parametrize(("wanted", "workers"), [(None, 4), (2, 2), (9, 4)])
def test_the_plan_is_the_lowest_bound(wanted: int | None, workers: int) -> None:
    plan = plan_workers([Bound("nofile", 20, "soft limit 256"), Bound("CPUs", 4, "quota")], wanted)
    assert plan.workers == workers
    assert plan.reasons == "nofile 20 (soft limit 256), CPUs 4 (quota)"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (GIB, "1.0 GiB"),
        (5000 * 2**40, "5000.0 TiB"),
        (UNLIMITED, "unlimited"),
    ],
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert format_size(size) == text


def zero_2(parameters: int, gpus: int, nodes: int, offload: bool) -> tuple[int, int]:
    """Return what DeepSpeed 0.19.8 says of ZeRO-2, in its own order of factors."""
    if offload:
        return int(parameters * max(4 * gpus * nodes, 16) * 1.5), 2 * parameters
    return (
        int(parameters * 4 * gpus * 1.5),
        2 * parameters + int(18 * parameters / (gpus * nodes)),
    )


def test_the_floor_of_seven_billion_parameters_is_the_measured_one() -> None:
    for gpus in range(1, 9):
        floor = find_floor(DeepSpeed(3, 7 * 10**9, 131 * 10**6, gpus, 1, True, True))
        assert f"{floor.node / GIB:.2f}" == "176.02"
        assert floor.gpu == 4 * 131 * 10**6


@pytest.mark.parametrize(
    ("run", "floor"),
    [
        # What the functions of DeepSpeed 0.19.8 return, for 6738415616 parameters.
        (DeepSpeed(3, 6738415616, 131072000, 8, 3, True, True), Floor(60645740544, 524288000)),
        (DeepSpeed(3, 6738415616, 131072000, 8, 3, True, True, False), Floor(323443949568, 524288000)),
        (DeepSpeed(3, 6738415616, 131072000, 8, 3, True), Floor(53907324928, 1085822634)),
        (DeepSpeed(3, 6738415616, 131072000, 1, 3, True, False, False), Floor(53907324928, 5016565077)),
        (DeepSpeed(3, 6738415616, 131072000, 8, 3), Floor(6291456000, 5578099712)),
        (DeepSpeed(3, 6738415616, 131072000, 8, 3, False, True, False), Floor(323443949568, 5578099712)),
        (DeepSpeed(2, 6738415616, None, 8, 1, True), Floor(323443949568, 13476831232)),
        (DeepSpeed(2, 6738415616, None, 1, 1, True), Floor(161721974784, 13476831232)),
        (DeepSpeed(2, 6738415616, None, 8, 3), Floor(323443949568, 18530642944)),
    ],
)  # fmt: skip
def test_the_floors_of_deepspeed(run: DeepSpeed, floor: Floor) -> None:
    assert find_floor(run) == floor


@pytest.mark.parametrize(
    ("run", "node"),
    [
        # Ten parameters of a thousand are trained: 2 bytes of each, 16 of those, and half more.
        (DeepSpeed(3, 1000, 10, 1, 1, True, True, True, 10), int((2000 + 160) * 1.5)),
        (DeepSpeed(3, 1000, 10, 1, 1, True, False, True, 10), 240),
        (DeepSpeed(2, 1000, None, 1, 1, True, False, True, 500), 12000),
        (DeepSpeed(2, 1000, None, 1, 1, True, False, True, 10), 6000),
        (DeepSpeed(3, 1000, 10, 1, 1, True, True, True, 10**6), 27000),
    ],
)
def test_only_what_is_trained_has_states_of_an_optimizer(run: DeepSpeed, node: int) -> None:
    assert find_floor(run).node == node


def test_the_floors_of_stage_2_over_a_grid() -> None:
    for parameters, gpus, nodes, offload in itertools.product(
        (1, 7 * 10**9 + 1, 123456789), (1, 3, 8), (1, 3, 7), (True, False)
    ):
        run = DeepSpeed(2, parameters, None, gpus, nodes, offload)
        assert find_floor(run) == zero_2(parameters, gpus, nodes, offload)


@pytest.mark.parametrize(
    ("environment", "returns"),
    [
        ({}, False),
        ({"MALLOC_TRIM_THRESHOLD_": "131072"}, True),
        ({"MALLOC_MMAP_THRESHOLD_": "1048576"}, True),
        ({"MALLOC_MMAP_THRESHOLD_": "1073741824"}, False),
        ({"MALLOC_TRIM_THRESHOLD_": "128K"}, False),
        ({"GLIBC_TUNABLES": "glibc.malloc.arena_max=1:glibc.malloc.trim_threshold=65536"}, True),
        ({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=99999999"}, False),
    ],
)
def test_malloc_gives_back_what_is_freed_where_that_is_stated(
    environment: dict[str, str], returns: bool
) -> None:
    assert returns_memory(environment) == returns


def test_a_heap_that_is_given_back_is_one_batch() -> None:
    run = Training(batch_size=MIB, tensors_per_batch=1, prefetch=5)
    assert find_worker_memory(run) == (16 + 6) * MIB
    assert find_worker_memory(run._replace(returns_memory=True)) == (16 + 1) * MIB


@pytest.mark.parametrize(
    ("run", "keeps"),
    [
        (Training(workers=1, batch_size=MIB, tensors_per_batch=1), True),
        (Training(workers=1, batch_size=MIB, tensors_per_batch=1, returns_memory=True), False),
        (Training(workers=1, batch_size=MIB, tensors_per_batch=2), False),
        (Training(workers=0, batch_size=MIB, tensors_per_batch=1), False),
        (Training(workers=1), False),
    ],
)
def test_a_heap_grows_where_tensors_are_large(run: Training, keeps: bool) -> None:
    assert keeps_heap(run) == keeps


OFFLOADED = DeepSpeed(3, 10**6, 10**5, offload_optimizer=True, offload_parameters=True)


@pytest.mark.parametrize(
    ("run", "kept"),
    [
        (Training(deepspeed=OFFLOADED), 22_500_000),
        (Training(deepspeed=OFFLOADED, epochs=1), 10_800_000),
        (Training(deepspeed=OFFLOADED, loaders=2), 45_000_000),
        (Training(deepspeed=OFFLOADED, loaders=2, epochs=1), 33_300_000),
        (Training(deepspeed=OFFLOADED._replace(trainable_parameters=10**5)), 2_250_000),
        (Training(deepspeed=OFFLOADED, start_method="spawn"), 0),
        (Training(deepspeed=OFFLOADED._replace(pin_memory=True)), 0),
        (Training(deepspeed=OFFLOADED._replace(offload_optimizer=False)), 0),
        (Training(), 0),
    ],
)
def test_forked_workers_keep_the_states_of_a_model(run: Training, kept: int) -> None:
    """What a step writes stays as it was with who was forked before."""
    assert find_kept_states(run) == kept
    alone = count_memory(run._replace(start_method="spawn"), 0)
    assert count_memory(run, 0) == alone
    if run.start_method == "fork":
        assert count_memory(run, 1) == alone + run.loaders * 16 * MIB + kept


@pytest.mark.parametrize(
    "run",
    [
        *(DeepSpeed(2), DeepSpeed(2, offload_optimizer=True), DeepSpeed(3)),
        *(DeepSpeed(3, zero_init=False), DeepSpeed(3, offload_optimizer=True)),
    ],
)
def test_a_model_of_which_nobody_said_the_size_takes_nothing(run: DeepSpeed) -> None:
    assert find_floor(run) == Floor(0, 0)


FILES = Training(dataset_files=500, epochs=1, prefetch=2, tensors_per_batch=2)
NAMES = FILES._replace(sharing="file_system")


@pytest.mark.parametrize(
    ("run", "needed"),
    [
        (FILES, 532),
        (FILES._replace(loaders=2), 564),
        (FILES._replace(loaders=3), 596),
        (FILES._replace(epochs=2), 534),
        (FILES._replace(epochs=2, hold=1), 536),
        (FILES._replace(loaders=2, hold=1), 566),
        (FILES._replace(start_method="spawn"), 532),
        (FILES._replace(start_method="spawn", loaders=2, epochs=2), 532),
        # Of names, each worker is connected to its manager, or to all that were there before.
        (NAMES, 525),
        (NAMES._replace(epochs=2), 528),
        (NAMES._replace(loaders=2), 546),
        (NAMES._replace(loaders=3), 564),
    ],
)
def test_how_many_descriptors_a_worker_has(run: Training, needed: int) -> None:
    """Four workers, of which each has more than the process that trains."""
    assert count_descriptors(run, 4) == needed


@pytest.mark.parametrize(
    ("run", "pages"),
    [
        (Training(), 22),
        (Training(tensors_per_batch=1), 22 + 5),
        (Training(batch_size=4096), 22 + 5),
        (Training(batch_size=4096, tensors_per_batch=1), 22 + 10),
        (Training(epochs=1), 11),
    ],
)
def test_the_shared_memory_of_one_worker(run: Training, pages: int) -> None:
    assert count_shared_memory(run, 1) == pages * 4096


@pytest.mark.parametrize(
    ("prefetch", "tensors", "heap"), [(2, 2, 6), (3, 2, 7), (4, 2, 7), (2, 1, 6), (3, 1, 8)]
)
def test_how_much_a_heap_keeps(prefetch: int, tensors: int, heap: int) -> None:
    run = Training(batch_size=2 * MIB, prefetch=prefetch, tensors_per_batch=tensors)
    assert find_worker_memory(run) == (16 + heap) * MIB


@pytest.mark.parametrize(
    ("run", "mappings", "memory", "addresses"),
    [
        (Training(), 350, 160, 700),
        (Training(library="accelerate"), 366, 205, 750),
        (Training(library="transformers"), 462, 275, 820),
        (Training(library="trl"), 887, 330, 2100),
        (Training(deepspeed=DeepSpeed(2)), 514, 290, 1850),
        (Training(deepspeed=DeepSpeed(3)), 514, 290, 1650),
    ],
)
def test_what_a_process_takes_before_its_workers(
    run: Training, mappings: int, memory: int, addresses: int
) -> None:
    assert count_mappings(run, 0) == mappings
    assert count_memory(run, 0) == memory * MIB
    assert count_addresses(run, 0) == addresses * MIB


@pytest.mark.parametrize(("method", "each"), [("fork", 16), ("spawn", 160), ("forkserver", 160)])
def test_what_a_worker_takes_by_how_it_is_started(method: str, each: int) -> None:
    assert find_worker_memory(Training(start_method=method)) == each * MIB


def test_without_a_bound_no_worker_is_planned() -> None:
    assert plan_workers([]).workers == 0
    assert plan_workers([], 3).workers == 3
