# SPDX-License-Identifier: BSD-2-Clause
"""What a loader of batches needs, and the largest number of its workers that a host bears.

Measured with torch 2.13: the process that trains holds one descriptor for each tensor of every
batch that is under way, and some for each worker; the batches themselves lie in shared memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from ..core.values import UNLIMITED, NamedTuple, format_quantity
from ..shared_memory.model import SHM
from .collectives import count_mapped_by_groups, count_of_groups, count_threads_of_rank
from .model_states import find_floor, find_kept_states, find_model_states
from .policy import Training

DESCRIPTORS, MEMORY, CPUS = "nofile", "memory", "CPUs"

_PER_WORKER = 4
"""A queue of two ends, a sentinel and a pipe of each worker."""
_OWN, _TRANSIENT, _OF_WORKER = 2, 2, 3
"""The queue of a loader, a tensor that is handed over, and what a worker has of its own."""
_SCATTER = 2
"""By how much the rule was off at most where it was measured."""
_MAPPED_BEFORE = {"torch": 350, "accelerate": 366, "transformers": 462, "trl": 887}
_MAPPED_BY_CUDA, _MAPPED_BY_DEEPSPEED, _FEEDER = 1000, 140, 4
_PAGE = 4096
_LOCKS, _LOCKS_OF_WORKER = 8, 3
"""Semaphores of the queues of a loader and of each worker: a nameless page of /dev/shm each."""
_MIB = 2**20
OWN_MEMORY = {
    "torch": 160 * _MIB,
    "accelerate": 205 * _MIB,
    "transformers": 275 * _MIB,
    "trl": 330 * _MIB,
}
"""Bytes of a process that trains, without a model and without CUDA, by what it imports."""
_OF_DEEPSPEED, _ADDRESSES_OF_ZERO = 130 * _MIB, {2: 1150 * _MIB, 3: 950 * _MIB}
"""Bytes that DeepSpeed adds, and by stage its addresses, with a bucket of 5e8 gradients."""
WORKER_MEMORY = {"fork": 16 * _MIB, "spawn": 160 * _MIB, "forkserver": 160 * _MIB}
"""Bytes that are a worker's own, without its data, by how it is started."""
_MANAGER_MEMORY = 60 * _MIB
"""Bytes of torch's manager of names, of which each worker has one."""
_LARGE = _MIB
"""Bytes of a tensor from which on a heap was seen to grow."""
_BATCHES_OF_WORKER = 3
"""Batches in a worker's own memory: the samples of one, and what its heap keeps of the last."""
_ADDRESSES = {
    "torch": 700 * _MIB,
    "accelerate": 750 * _MIB,
    "transformers": 820 * _MIB,
    "trl": 2100 * _MIB,
}
_ADDRESSES_OF_THREAD = 66 * _MIB
"""Address space of a process that trains on CPUs, and of each thread, such as feeds a worker.

Where there is less, a thread may do without a heap of its own, and small batches get along.
"""


class Bound(NamedTuple):
    """How many workers of each rank one thing allows, and why."""

    name: str
    most: int
    why: str


class Plan(NamedTuple):
    """The largest number of workers that fits, and every bound.

    ``unknown`` names each bound of which nobody knows how many it allows, with the reason.
    """

    workers: int
    bounds: tuple[Bound, ...]
    unknown: Mapping[str, str] = {}

    @property
    def reasons(self) -> str:
        """Say all bounds in one line: ``nofile 20 (soft limit 256), CPUs 8 (...)``."""
        told = ", ".join(f"{bound.name} {bound.most} ({bound.why})" for bound in self.bounds)
        unknown = ", ".join(f"{name} ({why})" for name, why in self.unknown.items())
        return "; ".join(filter(None, (told, unknown and f"not known: {unknown}")))


def find_hold(run: Training) -> int:
    """Return the batches that are kept beside the current one, by the program and its library.

    Measured: accelerate 1.x looks one batch ahead; transformers' Trainer 5.23 takes all batches of
    a step before it trains on them, and the next ones before it lets go.
    """
    of_step = 2 * run.gradient_accumulation - 1
    ahead = {"accelerate": 1, "transformers": of_step, "trl": of_step}
    return run.hold + ahead.get(run.library, 0)


def passes_descriptors(run: Training) -> bool:
    """Tell whether each tensor that a worker sends is a descriptor.

    The strategy is a variable of the process that trains: only a worker that is forked has it.
    """
    return run.sharing == "file_descriptor" or run.start_method != "fork"


def count_descriptors(run: Training, workers: int) -> int:
    """Return what the process that trains, or a worker, has open at most."""
    if not workers:
        return _count_before(run) + _OWN + run.dataset_files
    return max(_count_of_main(run, workers), _count_in_worker(run, workers))


def _count_before(run: Training) -> int:
    return run.base + count_of_groups(run)


def _count_of_main(run: Training, workers: int) -> int:
    kept = _count_tensors(run) * (find_hold(run) + 1)
    handed = _TRANSIENT if passes_descriptors(run) else 1
    of_loaders = run.loaders * _count_of_loader(run, workers)
    named = count_managers(run, workers)
    return _count_before(run) + of_loaders + kept + named + handed + _SCATTER


def _count_in_worker(run: Training, workers: int) -> int:
    """Return what a worker of the last loader has open, with what it begins with.

    One batch more than it may prefetch is not yet let go of.
    """
    tensors = _count_tensors(run)
    earlier = run.loaders - 1 if run.start_method == "fork" else 0
    begins_with = earlier * _count_of_loader(run, workers) + tensors * _inherit(run)
    own = _PER_WORKER * workers + tensors * (run.prefetch + 1)
    own += _OF_WORKER if passes_descriptors(run) else 1 + _count_named(run, workers)
    before = _count_before(run) if run.start_method == "fork" else run.base
    return before + begins_with + _OWN + own + run.dataset_files + _SCATTER


def _count_named(run: Training, workers: int) -> int:
    """Return the managers that a worker is connected to: its own, or those that it begins with."""
    return workers if run.loaders > 1 or run.epochs > 1 else 1


def _inherit(run: Training) -> int:
    """Return the batches that a worker begins with, as what starts it keeps them at that moment.

    It has them until it ends, in later epochs the last batch as well; those of earlier loaders,
    with their last batches, are not among them.
    """
    if run.start_method != "fork":
        return 0
    if run.loaders > 1:
        return find_hold(run)
    return find_hold(run) + 1 if run.epochs > 1 else 0


def _count_inherited(run: Training, workers: int) -> int:
    """Return the batches that are there as long as workers that began with them."""
    if run.start_method != "fork":
        return 0
    again = find_hold(run) + 1 if run.epochs > 1 else 0
    return again + (run.loaders - 1) * (find_hold(run) + _count_taken(run, workers))


def _count_of_loader(run: Training, workers: int) -> int:
    return _OWN + _PER_WORKER * workers + _count_tensors(run) * _count_taken(run, workers)


def _count_taken(run: Training, workers: int) -> int:
    """Return the batches of a loader in the process that trains: all but one slow worker's."""
    return (workers - 1) * run.prefetch + 1


def _count_tensors(run: Training) -> int:
    """Return the descriptors of one batch."""
    return (run.tensors_per_batch or 0) if passes_descriptors(run) else 0


def count_managers(run: Training, workers: int) -> int:
    """Return the managers of names, of which each worker of the first loader starts one.

    Who is forked after that begins with a connection to one, and so needs none.
    """
    return 0 if passes_descriptors(run) else workers


def count_mappings(run: Training, workers: int) -> int:
    """Return the mappings of the process that trains, by either strategy of sharing.

    Each tensor that a worker sent is one, as long as the program keeps its batch or waits for one
    before it; so is each semaphore, and a thread that feeds a worker has four. Measured with torch
    2.13 for CPUs.
    """
    before = _MAPPED_BEFORE[run.library] + (_MAPPED_BY_CUDA if run.gpus else 0)
    before += count_mapped_by_groups(run) + (_MAPPED_BY_DEEPSPEED if run.deepspeed else 0)
    if not workers:
        return before
    batches = run.loaders * _count_taken(run, workers) + 1 + find_hold(run)
    each = _LOCKS + (_LOCKS_OF_WORKER + _FEEDER) * workers
    return before + run.loaders * each + (run.tensors_per_batch or 0) * batches


def bound_by_descriptors(run: Training, soft: int) -> Bound:
    """Return how many workers the soft limit of nofile allows."""
    most = min(find_most(run, count, soft) for count in (_count_of_main, _count_in_worker))
    return Bound(DESCRIPTORS, most, f"soft limit {format_quantity(soft)}")


def find_batch_share(run: Training) -> int:
    """Return the bytes of shared memory that one batch takes: each tensor rounds up to a page."""
    return (run.batch_size or 0) + _PAGE * (run.tensors_per_batch or 0)


def count_shared_memory(run: Training, workers: int) -> int:
    """Return the bytes in /dev/shm of all ranks together.

    The semaphores of an epoch may still be there when the next one begins.
    """
    if not workers:
        return 0
    batches = run.loaders * (workers * run.prefetch + 1) + 1 + find_hold(run)
    batches += _count_inherited(run, workers)
    locks = (run.loaders + (run.epochs > 1)) * (_LOCKS + _LOCKS_OF_WORKER * workers)
    return run.ranks_per_node * (batches * find_batch_share(run) + _PAGE * locks)


def count_addresses(run: Training, workers: int) -> int:
    """Return the bytes of address space that a process of the run takes at least.

    A worker that is forked begins with all that the process has that trains.
    """
    threads = count_threads_of_rank(run)
    before = _ADDRESSES[run.library] + _ADDRESSES_OF_THREAD * threads
    if run.deepspeed:
        before += find_floor(run.deepspeed).node // run.ranks_per_node
        before += _ADDRESSES_OF_ZERO[run.deepspeed.stage]
    if not workers:
        return before
    batches = run.loaders * _count_taken(run, workers) + 1 + find_hold(run)
    mapped = (batches + _BATCHES_OF_WORKER) * (run.batch_size or 0) + run.worker_memory
    return before + _ADDRESSES_OF_THREAD * run.loaders * workers + mapped


def bound_by_shared_memory(run: Training, free: int) -> Bound:
    """Return how many workers of each rank the free bytes of /dev/shm allow."""
    return Bound(SHM, find_most(run, count_shared_memory, free), f"{format_size(free)} free")


def find_most(run: Training, count: Callable[[Training, int], int], free: int) -> int:
    """Return the largest number of workers whose need, linear from one on, is free."""
    one, two = count(run, 1), count(run, 2)
    return 1 + (free - one) // (two - one) if free >= one else 0


def count_memory(run: Training, workers: int) -> int:
    """Return the bytes of memory that all ranks of a node need at least.

    A batch in /dev/shm is memory too, and is charged to the cgroup of whoever wrote it.
    """
    many = run.loaders * workers
    each = find_own_memory(run) + many * find_worker_memory(run) + (run.pinned_buffer or 0)
    each += count_managers(run, workers) * _MANAGER_MEMORY
    shared = count_shared_memory(run, workers) if run.batch_size else 0
    states = find_model_states(run) + (find_kept_states(run) if workers else 0)
    return run.ranks_per_node * each + shared + states


def find_own_memory(run: Training) -> int:
    """Return the bytes of memory of a process that trains, without a model."""
    return OWN_MEMORY[run.library] + (_OF_DEEPSPEED if run.deepspeed else 0)


def find_worker_memory(run: Training) -> int:
    """Return the bytes of memory that each worker has for itself."""
    data = run.worker_memory + _count_heap_halves(run) * (run.batch_size or 0) // 2
    return WORKER_MEMORY[run.start_method] + data


def _count_heap_halves(run: Training) -> int:
    """Return how many half batches a worker's heap keeps.

    Measured: one batch where malloc(3) gives back what is freed. Else it learns not to: up to three
    batches, half of one more where it prefetches three or more, and all that it prefetches where a
    batch is one large tensor. In a long run the heap then grows on where a batch is few tensors of
    1 to 8 MiB: to 128 batches of 8 MiB after 400.
    """
    if run.returns_memory:
        return 2
    if run.tensors_per_batch == 1:
        return 2 * max(run.prefetch + 1, _BATCHES_OF_WORKER)
    return 2 * _BATCHES_OF_WORKER + (run.prefetch >= _BATCHES_OF_WORKER)


_OF_HEAP = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
_TUNED = r"(?:^|:)glibc\.malloc\.(?:trim|mmap)_threshold=([0-9]+)(?=:|$)"
HEAP = (_OF_HEAP[0], "131072")
GIVE_BACK = "=".join(HEAP)
"""What makes malloc(3) give back what is freed: to state its default keeps it from rising."""


def returns_memory(environment: Mapping[str, str]) -> bool:
    """Tell whether malloc(3) gives back what a worker frees, as its variables are stated."""
    stated = [environment.get(name, "") for name in _OF_HEAP]
    stated += re.findall(_TUNED, environment.get("GLIBC_TUNABLES", ""))
    return any(re.fullmatch("[0-9]{1,9}", one) and int(one) <= _LARGE for one in stated)


def keeps_heap(run: Training) -> bool:
    """Tell whether a worker's heap may grow all the time: its tensors are large, and freed."""
    tensor = (run.batch_size or 0) // max(run.tensors_per_batch or 1, 1)
    return bool(run.workers) and not run.returns_memory and tensor >= _LARGE


def bound_by_memory(run: Training, free: int, where: str) -> Bound:
    """Return how many workers of each rank the memory allows.

    :param where: Whose limit it is.
    """
    most = find_most(run, count_memory, free)
    return Bound(MEMORY, most, f"{format_size(free)} left of {where}")


def bound_by_cpus(run: Training, cpus: float, why: str) -> Bound:
    """Return how many workers of each rank have a CPU; one always may.

    :param cpus: Those of all ranks on the node; a quota may be a fraction.
    """
    return Bound(CPUS, max(int(cpus // run.ranks_per_node), 1), why)


def plan_workers(bounds: Iterable[Bound], wanted: int | None = None) -> Plan:
    """Return the largest number that every bound allows, and not more than are wanted."""
    bounds = tuple(bounds)
    most = [bound.most for bound in bounds] + ([] if wanted is None else [wanted])
    return Plan(min(most, default=0), bounds)


def format_size(size: int) -> str:
    """Write bytes for people: ``3.2 GiB``."""
    if size >= UNLIMITED:
        return "unlimited"
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = min(max(size.bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{size / 1024**power:.{1 if power else 0}f} {units[power]}"
