# SPDX-License-Identifier: GPL-3.0-or-later
"""A loader goes on with fewer workers, and gives the same batches in the same order."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from mlhost_limits.training.guard_levels import Level, Reached
from mlhost_limits.training.loader_measure import is_of_limit, make_loader

NEAR = Reached(Level("memory", 9, 10, "/a/memory.max"), "memory comes near")
RAISED = Reached(Level("descriptors", 9, 10, "RLIMIT_NOFILE"), "raised", 20)
EMFILE = OSError(24, "Too many open files")


class Fake:
    """Takes batches of indices ahead of what it gives, as torch's loader does, and fails as told.

    ``fails`` says for each number of workers at which batch; -1 is at the start.
    """

    fails: dict[int, int] = {}
    error: BaseException = EMFILE
    made: list[dict[str, Any]] = []
    starts = 0

    def __init__(self, dataset: Any, batch_size: int | None = 1, **more: Any) -> None:
        if not more.get("num_workers") and {"prefetch_factor", "timeout"} & more.keys():
            raise ValueError("prefetch_factor option could only be specified in multiprocessing")
        type(self).made.append({"batch_size": batch_size, **more})
        self.dataset, self.num_workers = dataset, more.get("num_workers", 0)
        self.sampler = more.get("sampler", range(len(dataset)))
        self.batch_sampler = more.get("batch_sampler")
        if self.batch_sampler is None and batch_size is not None:
            self.batch_sampler = [
                self.sampler[i : i + batch_size] for i in range(0, len(dataset), batch_size)
            ]

    def __iter__(self) -> Iterator[Any]:
        at = Fake.fails.get(self.num_workers)
        if at == -1:
            multiprocessing.Process(target=time.sleep, args=(60,), daemon=True).start()
            raise Fake.error
        return self.give(at)

    def give(self, at: int | None) -> Iterator[Any]:
        order: Iterable[Any] = self.sampler if self.batch_sampler is None else self.batch_sampler
        source = iter(order)
        ahead = [one for _number, one in zip(range(2 * self.num_workers), source)]
        given = 0
        while True:
            if given == at:
                raise Fake.error
            if not ahead:
                ahead += [one for _number, one in zip("x", source)]
                if not ahead:
                    return
            first = ahead.pop(0)
            ahead += [one for _number, one in zip("x", source)]
            given += 1
            yield (
                [self.dataset[i] for i in first]
                if self.batch_sampler is not None
                else self.dataset[first]
            )

    def __len__(self) -> int:
        return len(list(self.batch_sampler or self.sampler))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    Fake.fails, Fake.error, Fake.made = {}, EMFILE, []
    yield
    assert not multiprocessing.active_children()


DATA = [f"item {number}" for number in range(20)]
WHOLE = [DATA[i : i + 3] for i in range(0, 20, 3)]


@pytest.mark.parametrize(
    ("fails", "workers"),
    [
        ({}, 8),
        ({8: -1}, 4),
        ({8: 0}, 4),
        ({8: 3}, 4),
        ({8: 6}, 4),
        ({8: 7}, 4),
        ({8: 1, 4: 1, 2: 1, 1: 1}, 0),
        ({8: -1, 4: -1, 2: 2, 1: -1}, 0),
    ],
)
def test_the_batches_stay_the_same(fails: dict[int, int], workers: int) -> None:
    Fake.fails = fails
    loader = make_loader(Fake, DATA, {"batch_size": 3, "num_workers": 8, "prefetch_factor": 2}, [])
    assert list(loader) == WHOLE
    assert loader.num_workers == workers
    assert isinstance(loader, Fake)
    assert list(loader) == WHOLE
    assert len(loader) == 7


def test_the_next_epoch_begins_with_as_many_as_the_last_ended_with() -> None:
    Fake.fails = {8: 2}
    loader = make_loader(Fake, DATA, {"batch_size": 3, "num_workers": 8}, [])
    for _epoch in range(3):
        assert list(loader) == WHOLE
    assert [one["num_workers"] for one in Fake.made] == [8, 8, 4, 4]


def test_an_epoch_that_was_left_is_begun_anew() -> None:
    loader = make_loader(Fake, DATA, {"batch_size": 3, "num_workers": 2}, [])
    for batch in loader:
        assert batch == WHOLE[0]
        break
    assert list(loader) == WHOLE


def test_single_items_keep_their_order_too() -> None:
    Fake.fails = {4: 5}
    loader = make_loader(Fake, DATA, {"batch_size": None, "num_workers": 4}, [])
    assert list(loader) == DATA


@pytest.mark.parametrize(
    ("told", "workers"), [([NEAR], 4), ([RAISED], 8), ([NEAR, NEAR], 2), ([RAISED, NEAR], 4)]
)
def test_a_limit_that_comes_near_lowers_them_before_anything_fails(
    told: list[Reached], workers: int
) -> None:
    reached: list[Reached] = []
    loader = make_loader(Fake, DATA, {"batch_size": 3, "num_workers": 8}, reached)
    batches = []
    for number, batch in enumerate(loader):
        batches.append(batch)
        if number < len(told):
            reached.append(told[number])
    assert batches == WHOLE
    assert loader.num_workers == workers


@pytest.mark.parametrize(
    "error", [ValueError("no such column"), OSError(2, "No such file"), KeyboardInterrupt()]
)
def test_another_error_is_an_error(error: BaseException) -> None:
    Fake.fails, Fake.error = {8: 1}, error
    loader = make_loader(Fake, DATA, {"batch_size": 3, "num_workers": 8}, [])
    with pytest.raises(type(error)):
        list(loader)


def test_without_workers_nothing_is_left_to_lower() -> None:
    Fake.fails = dict.fromkeys((2, 1, 0), 1)
    loader = make_loader(Fake, DATA, {"batch_size": 3, "num_workers": 2}, [])
    with pytest.raises(OSError, match="Too many open files"):
        list(loader)


def test_iterable_data_keeps_its_workers() -> None:
    """Each of them gives a share: their number decides the order."""
    made: list[tuple[object, dict[str, Any]]] = []

    class Kind:
        def __init__(self, dataset: object, **words: Any) -> None:
            made.append((dataset, words))

    data = iter(DATA)
    assert type(make_loader(Kind, data, {"num_workers": 8}, [])) is Kind
    assert type(make_loader(Kind, DATA, {"num_workers": 0}, [])) is Kind
    assert made == [(data, {"num_workers": 8}), (DATA, {"num_workers": 0})]


def test_what_is_no_class_is_refused() -> None:
    with pytest.raises(ValueError, match="accepted is a class such as DataLoader"):
        make_loader(len, DATA, {"num_workers": 8}, [])


@pytest.mark.parametrize(
    ("error", "is_limit"),
    [
        (EMFILE, True),
        (OSError(11, "Resource temporarily unavailable"), True),
        (OSError(12, "Cannot allocate memory"), True),
        (OSError(28, "No space left on device"), False),
        (MemoryError(), True),
        (RuntimeError("received 0 items of ancdata"), True),
        (RuntimeError("Too many open files. Communication with the workers is no longer"), True),
        (RuntimeError("can't start new thread"), True),
        (
            RuntimeError("unable to write to file </torch_1_2_3>: No space left on device (28)"),
            True,
        ),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Bus error. "), True),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. "), True),
        (OSError("Caught OSError in DataLoader worker process 0.\n[Errno 24] Too many"), True),
        (RuntimeError("CUDA out of memory"), False),
        (ValueError("shapes differ"), False),
    ],
)
def test_which_errors_fewer_workers_may_mend(error: BaseException, is_limit: bool) -> None:
    assert is_of_limit(error) == is_limit
