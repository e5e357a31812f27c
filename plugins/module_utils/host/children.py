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


class Report(NamedTuple):
    """What one child returned, or why it returned nothing.

    ``late`` tells that it was ended because its time was over or it wrote too much.
    """

    value: Any
    problem: str = ""
    late: bool = False


class _Child:
    """One running child, and what it has said so far over its own pipe."""

    def __init__(self, pid: int, reader: int) -> None:
        self.pid, self.reader = pid, reader
        self.said = b""
        self.ended = False

    def listen(self, most: int) -> bool:
        """Take what the child says now. Return whether it has said all."""
        part = os.read(self.reader, _AT_ONCE)
        self.said += part
        self.ended = not part or part.endswith(b"\n") or len(self.said) > most
        return self.ended


def run_in_children(
    tasks: Sequence[Callable[[], object]], time_limit: float, most: int = _MOST
) -> list[Report]:
    """Run every task in a child of its own, all at once, and return what they return, in order.

    :param tasks: Each returns something that JSON can carry.
    :param time_limit: Seconds until children that have not reported are killed.
    :param most: How many bytes of JSON a child may answer with.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    handled = [one for one in _HANDLED if signal.getsignal(one) is not signal.SIG_DFL]
    children: list[_Child] = []
    try:
        for task in tasks:
            others = [child.reader for child in children]
            children.append(_start(task, null, others, handled))
        _listen(children, time.monotonic() + time_limit, most)
    finally:
        os.close(null)
        for child in children:
            os.close(child.reader)
        problems = [_end_child(child.pid, child.ended, time_limit) for child in children]
    return [_read_answer(child, problem, most) for child, problem in zip(children, problems)]


def _start(
    task: Callable[[], object], null: int, others: Sequence[int], handled: Sequence[int]
) -> _Child:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        for descriptor in (reader, *others):
            os.close(descriptor)
        _run_child(task, writer, null, handled)
    os.close(writer)
    return _Child(pid, reader)


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


def _listen(children: Sequence[_Child], deadline: float, most: int) -> None:
    """Hear every child until all have said what they have to say, or until the deadline."""
    poller = select.poll()
    waiting = {child.reader: child for child in children}
    for reader in waiting:
        poller.register(reader, select.POLLIN)
    while waiting:
        ready = poller.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            return
        for reader, _event in ready:
            if waiting[reader].listen(most):
                poller.unregister(reader)
                del waiting[reader]


def _read_answer(child: _Child, problem: str, most: int) -> Report:
    if len(child.said) > most:
        return Report(None, f"its answer is longer than {most} bytes")
    if not child.said.endswith(b"\n"):
        return Report(None, problem)
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
    deadline = time.monotonic() + _GRACE
    while True:
        found = os.waitpid(pid, os.WNOHANG)
        if found != (0, 0) or time.monotonic() >= deadline:
            return found
        time.sleep(0.001)


def _kill(pid: int) -> None:
    """End a child and its group; who keeps a user's processes has a moment to end them first.

    It is not reaped before, so that its number is no other's.
    """
    _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
        time.sleep(0.001)
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        os.kill(pid, number)  # It has no group of its own yet.
