# SPDX-License-Identifier: BSD-2-Clause
"""A loader that goes on with fewer workers where a limit comes near or was hit.

It is made from torch's DataLoader, or whatever is called like it, by what is public there: the
batches under way are given again to a new one with fewer workers, in the same order.
"""

from __future__ import annotations

import gc
import multiprocessing
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from .guard_levels import Reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from typing import Any

_ERRNOS = (11, 12, 23, 24)  # EAGAIN, ENOMEM, ENFILE, EMFILE.
_TOLD = re.compile(
    r"\[Errno (11|12|23|24)\]|Too many open files|received 0 items of ancdata"
    r"|Cannot allocate memory|can't start new thread|Resource temporarily unavailable"
    r"|out of shared memory|torch_.*No space left on device|killed by signal: (Killed|Bus error)"
)
"""What torch and multiprocessing make of these, without their number."""
_OF_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")
"""What a loader without workers does not take."""
_OF_ORDER = ("batch_size", "shuffle", "sampler", "drop_last", "batch_sampler")
_TO_END = 5.0


class Order:
    """The indices of batches in their order; what was taken and did not arrive is given again."""

    def __init__(self, source: Iterable[object]) -> None:
        self._source = source
        self._rest: Iterator[object] | None = None
        self._taken: deque[object] = deque()
        self._again: deque[object] = deque()

    def begin(self) -> None:
        """Begin an epoch."""
        self._rest = None
        self._taken.clear()
        self._again.clear()

    def arrive(self) -> None:
        """Note that the first batch which is under way has arrived."""
        self._taken.popleft()

    def __iter__(self) -> Iterator[object]:
        if self._rest is None:
            self._rest = iter(self._source)
        self._again.extendleft(reversed(self._taken))
        self._taken.clear()
        return self._give(self._rest)

    def _give(self, rest: Iterator[object]) -> Iterator[object]:
        while True:
            try:
                one = self._again.popleft() if self._again else next(rest)
            except StopIteration:
                return
            self._taken.append(one)
            yield one

    def __len__(self) -> int:
        return len(self._source)  # type: ignore[arg-type]


class Course:
    """The epochs of one loader, each begun with as many workers as the one before ended with.

    :param loader: What knows the order of the batches by its ``batch_sampler`` or ``sampler``.
    :param reached: What the guard has told so far; it grows.
    """

    def __init__(
        self,
        kind: Callable[..., Any],
        loader: Any,
        arguments: dict[str, Any],
        reached: Sequence[Reached],
    ) -> None:
        self.workers: int = arguments["num_workers"]
        self._kind, self._loader = kind, loader
        self._reached, self._seen = reached, len(reached)
        self._arguments = {key: arguments[key] for key in arguments.keys() - set(_OF_ORDER)}
        is_batched = getattr(loader, "batch_sampler", None) is not None
        self._order = Order(loader.batch_sampler if is_batched else loader.sampler)
        self._by: dict[str, object] = {"batch_sampler": self._order}
        if not is_batched:
            self._by = {"sampler": self._order, "batch_size": None}
        self._inner: Any = None
        self._lowered = 0
        self._children: set[BaseProcess] = set()

    def run(self) -> Iterator[Any]:
        """Yield the batches of an epoch."""
        self._order.begin()
        lowered = self._lowered
        while True:
            try:
                for batch in self._open(is_again=self._lowered != lowered):
                    self._order.arrive()
                    yield batch
                    if self.workers and len(self._reached) != self._seen and self._is_short():
                        break
                else:
                    return
                reason = self._reached[-1].text.partition(" (")[0]
            except Exception as exc:
                if not self.workers or not is_of_limit(exc):
                    raise
                reason = f"{type(exc).__name__}: {exc}".splitlines()[0]
            self._lower(reason)

    def _is_short(self) -> bool:
        """Tell whether the guard has told of a limit that it could not raise."""
        new, self._seen = self._reached[self._seen :], len(self._reached)
        return any(not one.raised for one in new)

    def _open(self, is_again: bool) -> Iterator[Any]:
        """Return an iterator over the batches that have not come."""
        if self._inner is None:
            number = {"num_workers": self.workers}
            left_out = () if self.workers else _OF_WORKERS
            kept = {key: self._arguments[key] for key in self._arguments.keys() - set(left_out)}
            seeded = self._make_generator() if is_again else {}
            self._inner = self._kind(**{**kept, **seeded, **number, **self._by})
        inner = self._inner
        if is_again:
            self._inner = None  # The next epoch draws its numbers as if nothing had happened.
        before = set(multiprocessing.active_children())
        try:
            return iter(inner)
        finally:
            new = set(multiprocessing.active_children()) - before
            self._children |= {child for child in new if child.daemon}

    def _make_generator(self) -> dict[str, object]:
        """Return what a second start draws from, so that the next epoch's order is as it was."""
        torch = sys.modules.get("torch")
        if torch is None:
            return {}
        generator = torch.Generator()
        generator.manual_seed((torch.initial_seed() + self._lowered) % 2**63)
        return {"generator": generator}

    def _lower(self, reason: str) -> None:
        """Go on with half of the workers, at the end without."""
        import logging

        before, self.workers = self.workers, self.workers // 2
        self._loader.num_workers, self._seen = self.workers, len(self._reached)
        self._lowered += 1
        self._inner = None
        # Torch would wait five seconds for each; and what an error's frames hold ends as well.
        for child in self._children:
            child.terminate()
            child.join(_TO_END)
        self._children.clear()
        gc.collect()
        text = f"the loader goes on with {self.workers} of {before} workers: {reason}"
        logging.getLogger("mlhost_limits").warning(text)


def is_of_limit(error: BaseException) -> bool:
    """Tell whether an error is that of a limit which fewer workers may keep."""
    by_number = isinstance(error, OSError) and error.errno in _ERRNOS
    return by_number or isinstance(error, MemoryError) or bool(_TOLD.search(str(error)))


def make_loader(
    kind: Callable[..., Any],
    dataset: object,
    arguments: dict[str, Any],
    reached: Sequence[Reached],
) -> Any:
    """Return a loader like that of a class, whose epochs go on with fewer workers if need be.

    Each worker of an iterable set of data gives a share of its own, so that their number decides
    the order: such a loader is as its class makes it.
    """
    if not isinstance(kind, type):
        raise ValueError(f"{kind!r} was given; accepted is a class such as DataLoader")
    if not arguments.get("num_workers") or _is_iterable(dataset):
        return kind(dataset, **arguments)
    made = type(kind.__name__, (kind,), {"__iter__": _iterate, "__module__": kind.__module__})
    loader = made(dataset, **arguments)
    loader.mlhost_course = Course(kind, loader, {**arguments, "dataset": dataset}, reached)
    return loader


def _iterate(loader: Any) -> Iterator[Any]:
    course: Course = loader.mlhost_course
    return course.run()


def _is_iterable(dataset: object) -> bool:
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(dataset, data.IterableDataset):
        return True
    return not hasattr(dataset, "__getitem__")
