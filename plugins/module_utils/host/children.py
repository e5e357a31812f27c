# SPDX-License-Identifier: BSD-2-Clause
"""Run functions in forked children at once, because what they measure changes the process."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..core.values import NamedTuple

_GRACE = 1.0  # Seconds that a killed child gets; one that waits for a dead disk does not end.
_HANDLED = (signal.SIGALRM, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_MOST = 2**20
_AT_ONCE = 65536
_LONGEST = 10**6  # Seconds that poll(2) is asked to wait at most; then it is asked again.
_REAPED_AT_ONCE = 100  # While children end, others can start.


class Report(NamedTuple):
    """What one child returned, or why it returned nothing.

    ``late`` tells that it was ended because its time was over or it wrote too much.
    """

    value: Any
    problem: str = ""
    late: bool = False


class _Child:
    """One running child, what it has said so far over its own pipe, and how long it may take."""

    def __init__(self, pid: int, reader: int, seconds: float, most: int) -> None:
        self.pid, self.reader, self.most = pid, reader, most
        self.seconds, self.deadline = seconds, time.monotonic() + seconds
        self.said = b""
        self.has_said_all = False

    def listen(self) -> bool:
        """Take what the child says now. Return whether it has said all."""
        part = os.read(self.reader, _AT_ONCE)
        self.said += part
        is_long = len(self.said) > self.most
        self.has_said_all = not part or part.endswith(b"\n") or is_long
        return self.has_said_all


class Children:
    """Children that run at once, each heard until its own time is over; all end with the block."""

    def __init__(self) -> None:
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._handled = [one for one in _HANDLED if signal.getsignal(one) is not signal.SIG_DFL]
        self._running: dict[int, tuple[int, _Child]] = {}
        self._reports: dict[int, Report] = {}
        self._leaving: list[int] = []
        self._poller = select.poll()

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._null)
        for _name, child in self._running.values():
            os.close(child.reader)
            _end_child(child.pid, False, child.seconds)
        for pid in self._leaving:
            _end_child(pid, True, 0.0)

    def __len__(self) -> int:
        """Return how many run, or have a report that nobody took."""
        return len(self._running) + len(self._reports)

    def start(self, name: int, task: Callable[[], object], seconds: float, most: int) -> None:
        """Start a child; where the host has no process left, that is its report."""
        try:
            pid, reader = self._fork(task)
        except OSError as error:
            self._reports[name] = Report(None, f"no process could be started: {error.strerror}")
            return
        self._running[reader] = name, _Child(pid, reader, seconds, most)
        self._poller.register(reader, select.POLLIN)

    def _fork(self, task: Callable[[], object]) -> tuple[int, int]:
        reader, writer = os.pipe()
        try:
            pid = os.fork()
            if pid == 0:
                for descriptor in (reader, *self._running):
                    os.close(descriptor)
                _run_child(task, writer, self._null, self._handled)
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        return pid, reader

    def hear(self) -> dict[int, Report]:
        """Return the reports that there are, by name; where there are none, wait for some."""
        while self._running and not self._reports:
            until = min(child.deadline for _name, child in self._running.values())
            ready = self._poller.poll(min(max(0.0, until - time.monotonic()), _LONGEST) * 1000)
            for reader, _event in ready:
                if self._running[reader][1].listen():
                    self._take(reader)
            now = time.monotonic()
            late = [one for one, (_name, child) in self._running.items() if child.deadline <= now]
            for reader in late:
                self._take(reader)
        found, self._reports = self._reports, {}
        return found

    def _take(self, reader: int) -> None:
        """Take the report of a child that has said all that it has time for."""
        name, child = self._running.pop(reader)
        self._poller.unregister(reader)
        os.close(reader)
        problem = ""
        if child.said.endswith(b"\n"):
            self._leaving.append(child.pid)
        else:
            problem = _end_child(child.pid, child.has_said_all, child.seconds)
        self._reports[name] = _read_answer(child, problem)


def run_in_children(
    tasks: Sequence[Callable[[], object]], time_limit: float, most: int = _MOST
) -> list[Report]:
    """Run every task in a child of its own, all at once, and return what they return, in order.

    :param tasks: Each returns something that JSON can carry.
    :param time_limit: Seconds until children that have not reported are killed.
    :param most: How many bytes of JSON a child may answer with.
    """
    reports: dict[int, Report] = {}
    with Children() as children:
        for at, task in enumerate(tasks):
            children.start(at, task, time_limit, most)
        while children:
            reports.update(children.hear())
    return [reports[at] for at in range(len(tasks))]


def _run_child(
    task: Callable[[], object], writer: int, null: int, handled: Sequence[int]
) -> NoReturn:
    """Run one task detached from terminal and standard streams, and never return."""
    status = 1
    try:
        gc.disable()  # A collection would copy every page shared with the parent.
        os.setsid()
        writer = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, 3)
        for stream in range(3):
            os.dup2(null, stream)
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
        write_all(writer, json.dumps(task()).encode() + b"\n")
        status = 0
    finally:
        os._exit(status)


def write_all(descriptor: int, content: bytes) -> None:
    """Write to a pipe, however often it takes."""
    while content:
        content = content[os.write(descriptor, content) :]


def reap() -> bool:
    """Reap children that have ended, whichever. Return whether there may be others."""
    try:
        for _one in range(_REAPED_AT_ONCE):
            if not os.waitpid(-1, os.WNOHANG)[0]:
                break
    except ChildProcessError:
        return False
    return True


def _read_answer(child: _Child, problem: str) -> Report:
    if len(child.said) > child.most:
        return Report(None, f"its answer is longer than {child.most} bytes")
    if not child.said.endswith(b"\n"):
        return Report(None, problem, late=not child.has_said_all)
    try:
        return Report(json.loads(child.said))
    except (ValueError, RecursionError):
        return Report(None, "its answer is not JSON")


def _end_child(pid: int, done: bool, time_limit: float) -> str:
    """Reap a child, killing it and its own children unless it is done. Return what went wrong.

    One that has answered may be a user's, who can stop it before it ends.
    """
    try:
        ended, status = _wait_a_little(pid) if done else os.waitpid(pid, os.WNOHANG)
        if not ended:
            _kill(pid)
            _wait_a_little(pid)
            return f"no answer within {time_limit:g} s"
    except ChildProcessError:
        return "its end was not seen"  # The caller ignores SIGCHLD.
    return (
        f"killed by signal {status & 127}" if status & 127 else f"ended with status {status >> 8}"
    )


def _wait_a_little(pid: int) -> tuple[int, int]:
    """Reap a child; one that not even SIGKILL ends now is left to process 1."""
    _await_end(pid)
    return os.waitpid(pid, os.WNOHANG)


def _await_end(pid: int) -> None:
    """Wait a little for the end of a child, and leave it to be reaped."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):  # Before Python 3.9 and Linux 5.3.
        deadline = time.monotonic() + _GRACE
        while not _has_ended(pid) and time.monotonic() < deadline:
            time.sleep(0.001)
        return
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        poller.poll(_GRACE * 1000)
    finally:
        os.close(handle)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill(pid: int) -> None:
    """End a child and its group; who keeps a user's processes has a moment to end them first.

    It is not reaped before, so that its number is no other's.
    """
    _signal(pid, signal.SIGTERM)
    _await_end(pid)
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        os.kill(pid, number)  # It has no group of its own yet.
