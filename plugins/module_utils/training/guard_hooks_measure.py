# SPDX-License-Identifier: BSD-2-Clause
"""What a guard hangs into the interpreter, once: into audit, fork, exit and errors."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import MethodType

from ..shared_memory.model import SHM
from .guard_levels import DESCRIPTORS, MAPPINGS, SPACE, TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EVENTS = {
    "open": (DESCRIPTORS, SHM),
    "socket.__new__": (DESCRIPTORS, MAPPINGS),  # By one of them torch gets each tensor.
    "mmap.__new__": (DESCRIPTORS, MAPPINGS, SHM, SPACE),
    "os.truncate": (SHM,),
    "sqlite3.connect": (DESCRIPTORS,),
    "os.fork": (TASKS, DESCRIPTORS),
    "os.forkpty": (TASKS, DESCRIPTORS),
    "os.posix_spawn": (TASKS,),
    "subprocess.Popen": (TASKS, DESCRIPTORS),
    "_thread.start_new_thread": (TASKS, MAPPINGS),
    "_thread.start_joinable_thread": (TASKS, MAPPINGS),
}
"""What takes something of a limit, by the interpreter's events; threads have one since 3.12."""

_MANY = 2**30
_LUMPS = 8
"""Events are told in lumps of that part of what may come before the next look."""
_QUIET, _THREADS = 1024, 256
"""The most events that wait to be told, and the threads that may find at a time that it is due."""


class Listener:
    """What hears of the interpreter's events."""

    def note(self, names: Iterable[str], number: int) -> None:
        """Count events that take something of these limits, and look where that is due."""

    def count(self, names: Iterable[str], number: int) -> None:
        """Count events that take something of these limits."""

    def find_quiet(self, names: Iterable[str]) -> int:  # noqa: ARG002 - of all that hear
        """Return after how many such events one of these limits is looked at."""
        return _MANY

    def look(self) -> None:
        """Look at everything once more: there was an error that nobody handles."""

    def stop_thread(self) -> None:
        """End the thread, for a fork or for good."""

    def start_thread(self) -> None:
        """Go on after a fork."""

    def forget_parent(self) -> None:
        """Begin anew in a child."""


_running: list[Listener] = []
_is_hung = False


def list_running() -> Sequence[Listener]:
    """Return the guards of this process that watch."""
    return tuple(_running)


def take_up(guard: Listener) -> None:
    """Let a guard hear of what happens; a hook of the interpreter can never be taken out again."""
    global _is_hung
    if not _is_hung:
        _is_hung = True
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child
        )
        atexit.register(_at_exit)
        _hang_into_errors()
        sys.addaudithook(make_table(_ears).get)
    _running.append(guard)
    hear_closely()


def let_go(guard: Listener) -> None:
    """Let a guard hear no more."""
    if guard in _running:
        _running.remove(guard)


class Ear:
    """One kind of event, heard by a key of a dict whose ``get`` is the interpreter's hook.

    A dict compares an event with the key that has the same hash and with no other, and the key
    answers with the next of its ticks: most are False, the last ones are this ear, and a dict asks
    it whether it is true. No step of Python's is made for an event that only counts, nor for one
    that takes nothing: a worker's batch comes with six for each tensor.
    """

    __slots__ = ("begun", "each", "event", "names", "running", "ticks")

    def __init__(self, event: str, names: tuple[str, ...], running: Sequence[Listener]) -> None:
        self.event, self.names, self.running = event, names, running
        self.each, self.begun = 1, 0
        self.ticks: Any = iter([*[False] * _QUIET, *[self] * _THREADS])

    def make_key(self) -> object:
        """Return the key, of a class of its own: an instance is not asked for its ``__eq__``."""
        hashed = hash(self.event)
        answer = MethodType(next, self.ticks)
        return type("Key", (), {"__hash__": lambda _self: hashed, "__eq__": answer})()

    def __bool__(self) -> bool:
        """Hear what was counted. An event is never found: ``get`` returns what it was given."""
        heard = self._begin(_QUIET)
        for guard in tuple(self.running):
            guard.note(self.names, heard)
        quiet = [guard.find_quiet(self.names) for guard in tuple(self.running)]
        self._begin(max(min(quiet, default=_MANY) // _LUMPS, 1))
        return False

    def _begin(self, lump: int) -> int:
        """Wait for a number of events from now on, and return how many were heard before."""
        now = _QUIET + _THREADS - self.ticks.__length_hint__()
        heard: int = (now - self.begun) // self.each
        self.begun = _QUIET + 1 - self.each * min(lump, _QUIET // self.each)
        self.ticks.__setstate__(self.begun)
        return heard

    def hear_closely(self) -> None:
        """Tell what was heard, without a look, and the next event at once."""
        heard = self._begin(1)
        if heard:
            for guard in tuple(self.running):
                guard.count(self.names, heard)

    def tune(self, table: Mapping[object, None]) -> None:
        """Find out how often an event is compared in this dict.

        Its search may come by a place that it has seen, by the hashes of texts in this process.
        """
        self._begin(_QUIET)
        table.get(self.event)
        self.each = self._begin(_QUIET)
        self._begin(1)


def make_table(ears: Sequence[Ear]) -> dict[object, None]:
    """Return the dict in which each kind of event is heard."""
    table = dict.fromkeys(ear.make_key() for ear in ears)
    for ear in ears:
        ear.tune(table)
    return table


_ears = tuple(Ear(event, names, _running) for event, names in _EVENTS.items())


def hear_closely() -> None:
    """Count all that was heard, and begin lumps anew, as a limit was looked at."""
    for ear in _ears:
        ear.hear_closely()


def _before_fork() -> None:
    """Fork without a second thread: Python warns of it since 3.12, as locks may be held."""
    for guard in _running:
        guard.stop_thread()


def _after_fork() -> None:
    for guard in _running:
        guard.start_thread()


def _in_child() -> None:
    for guard in _running:
        guard.forget_parent()
    _running.clear()


def _at_exit() -> None:
    for guard in tuple(_running):
        let_go(guard)
        guard.stop_thread()


def _hang_into_errors() -> None:
    of_main, of_threads = sys.excepthook, threading.excepthook

    def speak_first(kind: Any, error: Any, trace: Any) -> None:
        _say_last_words()
        of_main(kind, error, trace)

    def speak_first_in_thread(arguments: Any) -> None:
        _say_last_words()
        of_threads(arguments)

    sys.excepthook, threading.excepthook = speak_first, speak_first_in_thread


def _say_last_words() -> None:
    for guard in tuple(_running):
        guard.look()
