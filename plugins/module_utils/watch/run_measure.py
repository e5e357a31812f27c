# SPDX-License-Identifier: BSD-2-Clause
"""Start a command as a shell does, pass signals on to it, and end as it ended.

It has the standard streams, the process group and the terminal of whoever started it. A signal to
the group reaches it by itself, and one to the watcher alone is passed on: a second child, which
does nothing but tell which signals it got, tells the one from the other.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

_NOT_PASSED = {
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTSTP, signal.SIGTTIN),
    *(signal.SIGTTOU, signal.SIGCONT, signal.SIGWINCH, signal.SIGSEGV, signal.SIGBUS),
    *(signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS),
    *(signal.SIGPIPE, signal.SIGURG, signal.SIGXCPU, signal.SIGXFSZ),
}
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that the interpreter ignores, and a command shall not."""

_SAME = 0.05
"""Seconds within which all processes of a group get a signal that was sent to it."""
_LATEST = 10.0
"""Seconds for which a busy host may keep one of them from running."""

NOT_FOUND, NOT_RUN = 127, 126


def list_passed() -> list[int]:
    """Return the signals that are passed on: all that somebody may send, and does not ignore."""
    numbers = sorted(set(signal.valid_signals()) - _NOT_PASSED)
    return [one for one in numbers if signal.getsignal(one) != signal.SIG_IGN]


class Run:
    """A command that was started."""

    def __init__(self, words: Sequence[str]) -> None:
        """Start a command.

        :raises OSError: If it cannot be run: it is absent or is not a program.
        """
        self._passed = list_passed()
        self._own, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        old = signal.pthread_sigmask(signal.SIG_BLOCK, self._passed)
        self._of_children = signal.signal(signal.SIGCHLD, _hear_nothing)
        for number in self._passed:
            signal.signal(number, _hear_nothing)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        try:
            self.pid = self._start(words, old)
            self._others, self.witness = _start_witness(old)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)
        _let_go()

    def _start(self, words: Sequence[str], mask: set[int]) -> int:
        problem, say = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if not pid:
            try:
                for number in (*self._passed, *_OF_PYTHON):
                    signal.signal(number, signal.SIG_DFL)
                signal.signal(signal.SIGCHLD, self._of_children or signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                os.execvp(words[0], list(words))  # noqa: S606 - the caller's own command
            except OSError as error:
                os.write(say, struct.pack("i", error.errno or 0))
            finally:
                os._exit(NOT_FOUND)
        os.close(say)
        told = os.read(problem, 4)
        os.close(problem)
        if told:
            os.waitpid(pid, 0)
            (number,) = struct.unpack("i", told)
            raise OSError(number, os.strerror(number), words[0])
        return pid

    def wait(self) -> int:
        """Return the status with which the command ended, as wait(2) has it."""
        poll = select.poll()
        poll.register(self._own, select.POLLIN)
        if self._others >= 0:
            poll.register(self._others, select.POLLIN)
        sent: dict[int, float] = {}
        reached: dict[int, float] = {}
        while True:
            poll.poll(_SAME * 1000 if sent else None)
            now = time.monotonic()
            sent.update((one, now) for one in _read_all(self._own) if one in self._passed)
            if self._others >= 0:
                reached.update((one, now) for one in _read_all(self._others))
            ended = self._find_end()
            if ended is not None:
                return ended
            for number, at in list(sent.items()):
                if at - reached.get(number, -1.0) <= _SAME:
                    del sent[number]  # The whole group has it.
                elif now - at >= _SAME and not (now - at < _LATEST and self._may_reach(number)):
                    del sent[number]
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(self.pid, number)

    def _may_reach(self, number: int) -> bool:
        """Tell whether a signal may have reached the whole group, and the witness told it not yet.

        On a busy host it does not come to run for a while; what it has been sent is known before.
        """
        if self._others < 0:
            return False
        waits = _is_awaited(self.witness, number)
        return waits or select.select([self._others], [], [], 0)[0] != []

    def _find_end(self) -> int | None:
        """Return how the command ended, if it has; others end here where this is process 1."""
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in (0, self.pid):
                return status if pid else None


def _hear_nothing(_number: int, _frame: object) -> None:
    """Let a signal wake who waits, and nothing else."""


def _is_awaited(pid: int, number: int) -> bool:
    """Tell whether a process was sent a signal that it has not taken, or does not rest."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            rows = dict(row.split(":", 1) for row in file)
        pending = int(rows["SigPnd"], 16) | int(rows["ShdPnd"], 16)
    except (OSError, KeyError, ValueError):
        return False
    return bool(pending >> (number - 1) & 1) or rows["State"].split()[0] not in "SZX"


def _read_all(handle: int) -> bytes:
    try:
        return os.read(handle, 4096)
    except BlockingIOError:
        return b""


def _start_witness(mask: set[int]) -> tuple[int, int]:
    """Start a child that tells which signals it gets; return where, and it; -1 where none starts.

    It ends with its parent, however that ends.
    """
    heard, tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    alive, held = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
    except OSError:
        return -1, 0
    if not pid:
        try:
            signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
            for handle in (0, 1, 2, heard, held):
                os.close(handle)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.read(alive, 1)
        finally:
            os._exit(0)
    os.close(tell)
    os.close(alive)
    return heard, pid


def _let_go() -> None:
    """Leave what the run may want: who reads its output shall see its end when it closes it."""
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for handle in (0, 1):
        os.dup2(null, handle)
    os.close(null)
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def end_as(status: int, before: Callable[[], object]) -> int:
    """End as a command did: return its exit status, or die of the signal that it died of.

    :param before: What is still to be done then; it gets KeyboardInterrupt where nobody waits.
    """
    for one in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(one) != signal.SIG_IGN:
            signal.signal(one, signal.default_int_handler)
    before()
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
    return 128 + number  # Process 1 of a container cannot die so.
