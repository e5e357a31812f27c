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
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

_GRACE = 1.0  # Seconds that a killed child gets; one that waits for a dead disk does not end.
_HANDLED = (signal.SIGALRM, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Report(NamedTuple):
    """What one child returned, or why it returned nothing."""

    value: Any
    problem: str = ""


def run_in_children(tasks: Sequence[Callable[[], object]], time_limit: float) -> list[Report]:
    """Run every task in a child of its own, all at once, and return what they return, in order.

    :param tasks: Each returns something small (4 KB) that JSON can carry.
    :param time_limit: Seconds until children that have not reported are killed.
    """
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    pids: list[int] = []
    values: dict[int, Any] = {}
    ended = False
    try:
        for index, task in enumerate(tasks):
            pid = os.fork()
            if pid == 0:
                _run_child(index, task, writer, null)
            pids.append(pid)
        os.close(writer)
        writer = null
        ended = _collect(reader, len(tasks), time.monotonic() + time_limit, values)
    finally:
        for descriptor in sorted({reader, writer, null}):
            os.close(descriptor)
        problems = [
            _end_child(pid, ended or index in values, time_limit) for index, pid in enumerate(pids)
        ]
    return [
        Report(values.get(index), "" if index in values else problem)
        for index, problem in enumerate(problems)
    ]


def _run_child(index: int, task: Callable[[], object], writer: int, null: int) -> NoReturn:
    """Run one task detached from terminal and standard streams, and never return."""
    status = 1
    try:
        gc.disable()  # A collection would copy every page shared with the parent.
        os.setsid()
        writer = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, 3)
        for stream in range(3):
            os.dup2(null, stream)
        for number in _HANDLED:
            signal.signal(number, signal.SIG_DFL)
        os.write(writer, json.dumps([index, task()]).encode() + b"\n")
        status = 0
    finally:
        os._exit(status)


def _collect(reader: int, count: int, deadline: float, values: dict[int, Any]) -> bool:
    """Read reports into ``values`` until all are there. Return whether all children are done."""
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    pending = b""
    while len(values) < count:
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return False
        received = os.read(reader, 65536)
        if not received:
            break
        *lines, pending = (pending + received).split(b"\n")
        values.update(json.loads(line) for line in lines)
    return True


def _end_child(pid: int, done: bool, time_limit: float) -> str:
    """Reap a child, killing it and its own children unless it is done. Return what went wrong."""
    try:
        late = not (done or os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))
        if late:
            _kill(pid)
            _wait_a_little(pid)
            return f"no answer within {time_limit:g} s"
        status = os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return "its end was not seen"  # The caller ignores SIGCHLD.
    return (
        f"killed by signal {status & 127}" if status & 127 else f"ended with status {status >> 8}"
    )


def _wait_a_little(pid: int) -> None:
    """Reap a killed child; one that not even SIGKILL ends now is left to process 1."""
    deadline = time.monotonic() + _GRACE
    while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # It has no group of its own yet.
