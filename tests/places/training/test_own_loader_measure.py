# SPDX-License-Identifier: GPL-3.0-or-later
"""What a loader is seen to take, without torch: whatever has numel and element_size is a tensor."""

from __future__ import annotations

import os
import time
import types
from collections.abc import Callable, Iterator

import pytest
from mlhost_limits import measure, plan_workers


class Tensor:
    """So many numbers of four bytes."""

    def __init__(self, numbers: int) -> None:
        self.numbers = numbers

    def numel(self) -> int:
        return self.numbers

    def element_size(self) -> int:
        return 4


class Loader:
    """Yields what it is given, and begins like a DataLoader."""

    num_workers, prefetch_factor, persistent_workers = 3, 5, True

    def __init__(self, make: Callable[[], Iterator[object]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[object]:
        return self.make()


def batches() -> Iterator[object]:
    yield {"x": Tensor(10), "y": [Tensor(1), (Tensor(2), "text", 7)]}
    yield [Tensor(1000)]


def test_the_largest_of_all_batches_counts_and_the_loader_speaks_for_itself() -> None:
    found = measure(Loader(batches))
    assert (found["tensors_per_batch"], found["batch_size"]) == (3, "4000B")
    assert (found["workers"], found["prefetch"], found["epochs"]) == (3, 5, 1)
    assert found["worker_memory"] == "0B"
    assert measure(Loader(batches), batches=1)["batch_size"] == "52B"
    assert plan_workers(2, **found).workers <= 2


def test_a_worker_is_as_large_as_what_is_its_own() -> None:
    size = 100 * 2**20

    def start() -> Iterator[object]:
        pid = os.fork()
        if not pid:
            held = b"x" * size
            time.sleep(600 if held else 0)
        time.sleep(0.5)
        yield Tensor(1)

    found = measure(Loader(start))
    assert 30 * 2**20 < int(str(found["worker_memory"])[:-1]) < size


def never() -> Iterator[object]:
    time.sleep(600)
    yield Tensor(1)


def fail() -> Iterator[object]:
    raise KeyError("no such shard")
    yield


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: iter(()), "it makes no batch"),
        (fail, "KeyError: 'no such shard'"),
        (never, "no answer within 0.3 s"),
    ],
)
def test_what_cannot_be_measured_is_said(make: Callable[[], Iterator[object]], told: str) -> None:
    with pytest.raises(RuntimeError, match=f"the loader was not measured: {told}"):
        measure(Loader(make), seconds=0.3 if make is never else 20.0)


def test_what_lies_in_itself_comes_to_an_end() -> None:
    batch: list[object] = [Tensor(1)]
    batch.append(batch)
    assert measure(Loader(lambda: iter([batch])))["tensors_per_batch"] == 1


def test_a_tensor_counts_once_and_that_of_an_object_as_well() -> None:
    tensor = Tensor(1)
    batch = [tensor, tensor, types.SimpleNamespace(x=tensor, y=Tensor(2))]
    found = measure(Loader(lambda: iter([batch])))
    assert (found["tensors_per_batch"], found["batch_size"]) == (2, "12B")


def test_a_worker_that_is_spawned_begins_with_more() -> None:
    """What every such worker has is no data of this one."""

    def start() -> Iterator[object]:
        ready, done = os.pipe()
        if not os.fork():
            held = b"x" * (200 * 2**20)
            os.write(done, b"x")
            time.sleep(600 if held else 0)
        os.read(ready, 1)
        time.sleep(0.5)
        yield Tensor(1)

    loader = Loader(start)
    forked = int(str(measure(loader)["worker_memory"])[:-1])
    loader.multiprocessing_context = types.SimpleNamespace(  # type: ignore[attr-defined]
        get_start_method=lambda: "spawn"
    )
    spawned = int(str(measure(loader)["worker_memory"])[:-1])
    assert forked - spawned == pytest.approx((160 - 16) * 2**20, abs=2**20)
