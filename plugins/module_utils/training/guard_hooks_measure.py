# SPDX-License-Identifier: BSD-2-Clause
"""What a guard hangs into the interpreter, once: into audit, fork, exit and errors."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence

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


class Listener:
    """What hears of the interpreter's events."""

    def note(self, names: Iterable[str]) -> None:
        """Count one event that takes something of these limits."""

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
        sys.addaudithook(_make_ear(_EVENTS, _running))
    _running.append(guard)


def let_go(guard: Listener) -> None:
    """Let a guard hear no more."""
    if guard in _running:
        _running.remove(guard)


def _make_ear(
    events: dict[str, tuple[str, ...]], running: list[Listener]
) -> Callable[[str, tuple[object, ...]], None]:
    """Return the hook. Its names are its own: when the interpreter ends, the module's are gone."""

    def hear(event: str, _arguments: tuple[object, ...]) -> None:
        if event in events:
            for guard in tuple(running):
                guard.note(events[event])

    return hear


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
