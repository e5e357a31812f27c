# SPDX-License-Identifier: BSD-2-Clause
"""Guard a training process: raise its soft limits, watch them, and say which one comes near.

A thread looks at every limit, and the interpreter's audit hook counts what is opened, mapped and
started between two looks (PEP 578), so that no loop of Python's runs into a limit unseen.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType

from ..shared_memory.model import SHM
from .guard_hooks_measure import Listener, hear_closely, let_go, list_running, take_up
from .guard_levels import (
    DESCRIPTORS,
    MAPPINGS,
    SPACE,
    TASKS,
    Level,
    Reached,
    Trend,
    choose_rest,
    describe,
)
from .guard_read import Sources, find_kinds, read_descriptors, read_shared_memory, read_space
from .soft_limits_settle import Raised, raise_soft_limits, raise_to_hard, read_again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PATIENCE = 0.5
"""Seconds that a thread which reaches a limit waits at most, once, until that is told."""
_FORK_PATIENCE = 0.05
_EXIT_PATIENCE = 1.0
_SEEN_EVERY = 8
"""What is opened or mapped says little of how many bytes: they are looked at after so many."""
_UNCOUNTED = 2**30


class _Round:
    """Levels that are read together: when next, what that costs, and what share it may take."""

    def __init__(self, read: Callable[[], Iterable[Level]], share: float) -> None:
        self.read, self.share = read, share
        self.due = self.cost = 0.0


class Guard(Listener):
    """What watches this process; see :func:`mlhost_limits.guard`."""

    def __init__(
        self,
        raise_limits: bool = True,
        threshold: float = 0.8,
        on_limit: Callable[[Reached], object] | None = None,
    ) -> None:
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold {threshold!r}: accepted is a part, above 0 and at most 1")
        self.options = (raise_limits, threshold, on_limit)
        self.raised: list[Raised] = []
        self.reached: list[Reached] = []
        self._threshold, self._on_limit = threshold, on_limit
        self._holders = 0
        self._forget()

    def _forget(self) -> None:
        """Begin with nothing seen; also in a child after a fork, whose locks may be held."""
        self._sources = Sources(self._threshold)
        self._rounds = (_Round(self._read_often, 3e-4), _Round(self._read_seldom, 1e-4))
        self._trends: dict[tuple[str, str], Trend] = {}
        self._budget = dict.fromkeys((DESCRIPTORS, TASKS, MAPPINGS, SHM, SPACE), 0)
        self._untold: deque[tuple[Level, float, int]] = deque()
        self._asked = self._done = self._awaited = 0
        self._is_telling = False
        self._lookers: set[int] = set()
        self._following = threading.Lock()
        self._wake = threading.Lock()  # To wait for a lock takes a core for less than an event.
        self._wake.acquire()
        self._told = threading.Event()
        self._thread: threading.Thread | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A process that is spawned with it guards itself."""
        return open_guard, self.options

    # Beginning and end.

    def start(self) -> Guard:
        """Begin to watch; it ends after as many calls of ``stop``, or with the process."""
        self._holders += 1
        if self._holders == 1:
            if self.options[0]:
                self.raised = raise_soft_limits()
                _log_raised(self.raised)
            self._forget()
            self._sources.find()
            take_up(self)
            self.start_thread()
        return self

    def stop(self) -> None:
        """Cease to watch; also from within ``on_limit``."""
        self._holders = max(self._holders - 1, 0)
        if not self._holders:
            let_go(self)
            self.stop_thread(_EXIT_PATIENCE)

    def __enter__(self) -> Guard:
        return self if self._holders else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.look()  # The error may be a limit's.
        self.stop()

    def start_thread(self) -> None:
        """Begin to look by the clock; without a thread what is counted still leads to a look."""
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._watch, name="mlhost-guard", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except (RuntimeError, MemoryError):
            self._thread = None  # That limit is reached; it is tried again after the next fork.

    def stop_thread(self, patience: float = _FORK_PATIENCE) -> None:
        """End the thread; one that is in a callback ends after it."""
        thread, self._thread = self._thread, None
        self._wake_up()
        if thread is not None and thread is not threading.current_thread():
            thread.join(patience)

    def forget_parent(self) -> None:
        """Be silent in a child after a fork, which may open a guard of its own."""
        self._holders = 0
        self._forget()

    # Looking.

    def _read_often(self) -> Iterable[Level]:
        return self._sources.read_often()

    def _read_seldom(self) -> Iterable[Level]:
        return self._sources.read_seldom()

    def _watch(self) -> None:
        own, rest, begin = threading.current_thread(), 0.0, 0.0
        while self._thread is own:
            self._wake.acquire(timeout=rest)
            if self._thread is own:
                self._go_round(begin)
                self._tell()
                begin = time.thread_time()
                rest = max(min(one.due for one in self._rounds) - time.monotonic(), 0)

    def _wake_up(self) -> None:
        with suppress(RuntimeError):  # It is released already.
            self._wake.release()

    def _go_round(self, begin: float) -> None:
        """Look at what is due; its cost is that of late, as one look tells little.

        :param begin: What this thread had used of a core when it went to sleep.
        """
        now = time.monotonic()
        for one in self._rounds:
            if one.due <= now:
                trends = self._see(one.read)
                one.cost = (one.cost + time.thread_time() - begin) / 2
                rest = choose_rest(trends, self._threshold, one.cost, one.share)
                begin, one.due = time.thread_time(), time.monotonic() + rest

    def look(self) -> None:
        """Look at everything now, and tell what has to be told."""
        for one in self._rounds:
            self._see(one.read)
        self._tell()

    def _see(self, read: Callable[[], Iterable[Level]]) -> list[Trend]:
        """Read and follow; where a limit comes near, raise it at once and tell it soon.

        Threads may look at the same time: one that waits for the interpreter keeps nobody waiting.
        What is opened in order to look is no reason to look again.
        """
        own = threading.get_ident()
        if own in self._lookers:
            return []
        self._lookers.add(own)
        try:
            trends, begin = [], time.monotonic()
            for level in read():
                trends.append(self._follow(level, begin))
                begin = time.monotonic()
        finally:
            self._lookers.discard(own)
        for name in {one.level.name for one in trends if one.level} & self._budget.keys():
            self._budget[name] = self._count_left(name)
        hear_closely()
        return trends

    def _follow(self, level: Level, begin: float) -> Trend:
        with self._following:
            level = read_again(level)  # Another thread may have raised it meanwhile.
            trend = self._trends.setdefault((level.name, level.where), Trend())
            if trend.follow(level, begin, self._threshold):
                raised = raise_to_hard(level)
                self._untold.append((level, trend.rate, raised))
                self._asked += 1
                if raised:
                    trend.rearm(raised)
        return trend

    def _count_left(self, name: str) -> int:
        """Return after how many events a limit has to be looked at again."""
        if name in (SHM, SPACE):
            return _SEEN_EVERY
        kept = [one for one in tuple(self._trends.values()) if one.level and one.level.name == name]
        left = min(one.find_left(self._threshold) for one in kept)
        # It overshoots by half a percent, so that not every event needs a look.
        least = min(one.level.limit for one in kept if one.level) // 200
        return max(int(min(left, _UNCOUNTED)) // 2, least, 1)

    def note(self, names: Iterable[str], number: int) -> None:
        """Count that something is about to be opened, mapped or started, in whatever thread."""
        self.count(names, number)
        for name in names:
            if self._budget[name] <= 0:
                self._look_at(name)
        if self._is_telling and self._may_wait():
            hear_closely()  # A third thread has to wait as well.
            self._wait_until_told(self._asked)

    def count(self, names: Iterable[str], number: int) -> None:
        """Count it, and do not look."""
        for name in names:
            self._budget[name] -= number

    def find_quiet(self, names: Iterable[str]) -> int:
        """Return after how many such events one of these limits is looked at."""
        return min(self._budget[name] for name in names)

    def _look_at(self, name: str) -> None:
        """Look at one kind of limit now; who opens waits a moment until it is told.

        The callback runs in the guard's thread, which holds no lock of whoever opens.
        """
        if threading.get_ident() in self._lookers:
            return  # The next event after that look comes back to it.
        self._budget[name] = _UNCOUNTED
        self._see(lambda: self._read_one(name))
        thread = self._thread
        if self._done < self._asked and thread is not threading.current_thread():
            if thread is None or not thread.is_alive():
                self._tell()
            elif self._awaited < self._asked:
                self._awaited = self._asked
                self._is_telling = True
                hear_closely()
                self._wait_until_told(self._asked)
                self._is_telling = False

    def _may_wait(self) -> bool:
        """Tell whether this thread is the run's: who tells or looks waits for nobody."""
        own = threading.current_thread()
        return own is not self._thread and threading.get_ident() not in self._lookers

    def _wait_until_told(self, number: int) -> None:
        end = time.monotonic() + _PATIENCE
        while self._done < number and time.monotonic() < end:
            self._told.clear()
            self._wake_up()
            if self._done < number:
                self._told.wait(max(end - time.monotonic(), 0))

    def _read_one(self, name: str) -> Iterable[Level]:
        if name == DESCRIPTORS:
            return read_descriptors()
        if name == SHM:
            return read_shared_memory()
        if name == SPACE:
            return read_space()
        if name == MAPPINGS:
            return self._sources.read_mappings()
        return self._sources.read_tasks()

    # Telling.

    def _tell(self) -> None:
        while self._untold:
            try:
                level, rate, raised = self._untold.popleft()
            except IndexError:
                break  # Another thread told it.
            kinds = find_kinds() if level.name == DESCRIPTORS else ()
            reached = Reached(level, describe(level, rate, kinds, raised), raised)
            self.reached.append(reached)
            self._call(reached)
            with self._following:
                self._done += 1
            self._told.set()

    def _call(self, reached: Reached) -> None:
        import logging

        logger = logging.getLogger("mlhost_limits")
        logger.warning(reached.text)
        if self._on_limit is not None:
            try:
                self._on_limit(reached)
            except Exception:  # Whatever it raises, the run goes on.
                logger.exception("on_limit failed")

    # Workers.

    def workers(self, wanted: int, **run: object) -> int:
        """Return how many workers fit into this process now, at most as many as are wanted.

        :param run: Keys of the policy's section ``training``, such as ``tensors_per_batch=8``.
        """
        from .own_survey_read import bound_by_level, survey_self

        self.look()
        tasks = [one.level for (name, _where), one in self._trends.items() if name == TASKS]
        survey = survey_self(run)
        bounds = [*survey.deadly, *(bound_by_level(one, survey.run) for one in tasks if one)]
        return max(min([wanted, *(bound.most for bound in bounds)]), 0)

    def loader(self, kind: Callable[..., Any], dataset: object, **arguments: Any) -> Any:
        """Return a loader of a class, torch's or like it, that goes on with fewer workers.

        ``watch.loader(DataLoader, dataset, num_workers=16, ...)`` begins with as many as fit. Where
        a limit comes near, or an error of one is raised, it goes on with half of them, and at last
        without; the batches stay the same, in the same order.
        """
        from .loader_measure import make_loader

        if arguments.get("num_workers"):
            arguments["num_workers"] = self.workers(arguments["num_workers"])
        return make_loader(kind, dataset, arguments, self.reached)


def open_guard(
    raise_limits: bool = True,
    threshold: float = 0.8,
    on_limit: Callable[[Reached], object] | None = None,
) -> Guard:
    """Return a guard that runs: the one that does already, if it was asked for the same."""
    new = Guard(raise_limits, threshold, on_limit)
    same = (one for one in list_running() if isinstance(one, Guard) and one.options == new.options)
    return next(same, new).start()


def _log_raised(raised: Iterable[Raised]) -> None:
    import logging

    for one in raised:
        logging.getLogger("mlhost_limits").info(str(one))
