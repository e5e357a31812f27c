# SPDX-License-Identifier: BSD-2-Clause
"""Run a task so that whoever asked for it lives on, whatever becomes of the task."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any, NoReturn

from ..core.quote import one_line, say_error
from ..core.reader import PolicyError

_GRACE = 5.0  # Seconds for a task to take back what it began.
_LARGEST = 64 * 2**20
_LONGEST = 500


def run_guarded(task: Callable[[], object], seconds: float) -> tuple[Any, str]:
    """Run a task in a child, and return what it returned, and why it returned nothing.

    An exception of any kind, a crash of Python itself, no memory, no end: each is a sentence.

    :param task: It returns what JSON can carry.
    :param seconds: How long it may take.
    """
    try:
        reader, writer = os.pipe()
    except OSError as exc:
        return None, describe_trouble(exc)
    try:
        pid = os.fork()
        if pid == 0:
            _run(task, writer)
    except OSError as exc:
        os.close(writer)
        os.close(reader)
        return None, f"no process can be started ({exc.strerror})"
    os.close(writer)
    try:
        text, late = _read(reader, pid, time.monotonic() + seconds)
    finally:
        os.close(reader)
        status = _end(pid)
    if late:
        return None, f"it did not end within {seconds:g} s"
    return _parse(text, status)


def describe_trouble(exc: BaseException) -> str:
    """Return what an exception says, in one line; of one that nobody expected, its kind too."""
    if isinstance(exc, PolicyError):
        told = "; ".join(exc.problems)
    elif isinstance(exc, (OSError, ValueError)):
        told = say_error(exc)
    else:
        told = f"{type(exc).__name__} {exc}".strip()
    told = one_line(told)
    return told if len(told) <= _LONGEST else f"{told[:_LONGEST]}…"


def _run(task: Callable[[], object], writer: int) -> NoReturn:
    """Run the task and write what it returned. Runs in the child, and never returns."""
    try:
        # What asks it to end lets it clean up; nothing on the way takes this for an error of its.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            told = json.dumps({"value": task()})
        except BaseException as exc:  # Whatever it is, somebody must be told.
            told = json.dumps({"problem": describe_trouble(exc)})
        left = told.encode() + b"\n"
        while left:
            left = left[os.write(writer, left) :]
    finally:
        os._exit(0)


def _read(reader: int, pid: int, deadline: float) -> tuple[bytes, bool]:
    """Return the line that a child writes, and whether it was too late.

    What the child started may hold the pipe open when it is gone.
    """
    text, ended = b"", False
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    while not text.endswith(b"\n") and len(text) <= _LARGEST:
        if poller.poll(200):
            received = os.read(reader, 2**20)
            if not received:
                break
            text += received
        elif ended:
            break
        elif time.monotonic() > deadline:
            return b"", True
        ended = _has_ended(pid)
    return text, False


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # The caller ignores SIGCHLD.


def _end(pid: int) -> int:
    """End a child, and return how it ended; what not even SIGKILL ends now is left alone."""
    for number, patience in ((0, 0.2), (signal.SIGTERM, _GRACE), (signal.SIGKILL, 1.0)):
        try:
            os.kill(pid, number)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    return status
                time.sleep(0.01)
        except (ChildProcessError, ProcessLookupError):
            return 0
    return 0


def _parse(text: bytes, status: int) -> tuple[Any, str]:
    if not text.endswith(b"\n"):
        ended = f"it was killed by signal {status & 127}" if status & 127 else "it ended early"
        return None, ended
    told = json.loads(text)
    return told.get("value"), str(told.get("problem", ""))
