# SPDX-License-Identifier: BSD-2-Clause
"""Check a host within a time limit: a section that hangs or crashes leaves the others standing.

The look runs in a child, which tells of each finding as it is made. A child that comes to no end
is ended, and another goes on with the sections that are left; what did not answer is unknown.
"""

from __future__ import annotations

import math
import os
import pickle
import select
import signal
import struct
import time
from functools import partial
from typing import Any, NoReturn

from .check_host import (
    CheckResult,
    conclude,
    finish_findings,
    is_unbooted,
    list_sections,
    look_at_image,
    look_at_section,
    require_stated,
)
from .core.finding import Finding, judge_unlooked
from .core.policy import CheckOptions, Policy
from .core.reader import PolicyError
from .core.values import NamedTuple
from .host.look import Look
from .places import look_at_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Callable[[str, int, int], None]

_GRACE = 3.0  # Seconds in which a look that is ended may put away what it made.
_LEAST = 1.0
_AGAIN = 0.02  # Seconds between two signals: Python minds one that comes while it takes another.
_RESERVE = 0.04  # Of the whole time, for each section that is still to come.
_HEAD = struct.Struct("!IB")  # The size of a message, and its kind.
_AT_ONCE = 65536
_PULSE = 0.2  # Seconds after which somebody who waits is told how far the look is.
_LONGEST = 10**6  # Seconds that poll(2) is asked to wait at most.
_MOST = 64 * 2**20
_END, _SECTION, _FINDING, _DONE, _REFUSED, _INTERRUPTED = range(6)
_IMAGE = "image"
_AFTER_ALL = "after all sections"  # Who wrote a file at fault; why the connection has less.


class _Told(NamedTuple):
    """What one child told: where it was when it ended, and the result if it came to one."""

    section: str
    result: Any = None


def check_within(
    policy: Policy,
    options: CheckOptions,
    look: Look | None = None,
    progress: Progress | None = None,
) -> CheckResult:
    """Return what :func:`check_host` does, within ``options.time_limit`` seconds.

    :param progress: Called often, with the section that is looked at, its number and how many.
    :raises OSError: If no process can be started to look.
    :raises ValueError: If the time limit is not above 0, or no section is asked for.
    """
    if not 0 < options.time_limit < math.inf:
        raise ValueError(f"time_limit: {options.time_limit!r} is not a number of seconds above 0")
    require_stated(policy, options)
    watch = _Watch(policy, options, look or look_at_host(), progress)
    findings, causes = watch.run()
    return conclude(policy, options, findings, causes)


class _Watch:
    """One check, and the children that make it one after the other."""

    def __init__(
        self,
        policy: Policy,
        options: CheckOptions,
        look: Look,
        progress: Progress | None = None,
    ) -> None:
        self.policy, self.options, self.look, self.progress = policy, options, look, progress
        self.deadline = time.monotonic() + options.time_limit
        self.waiting = [_IMAGE] if is_unbooted(options) else list_sections(options)
        self.sections = tuple(self.waiting)
        self.findings: list[Finding] = []

    def run(self) -> tuple[list[Finding], Any]:
        while self.waiting:
            told = self._run_child()
            if told.result is not None:
                return told.result  # type: ignore[no-any-return]
            self.waiting = self.waiting[self.waiting.index(told.section) + 1 :]
        return self.findings, ()

    def _run_child(self) -> _Told:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            self._look(writer)
        os.close(writer)
        ear = _Ear(reader)
        try:
            return self._hear(ear, pid)
        except KeyboardInterrupt as interrupt:
            said = str(interrupt) or _hear_interrupt(ear)  # Ctrl-C reaches both.
            raise KeyboardInterrupt(said) from None
        finally:
            os.close(reader)
            _end(pid)

    def _hear(self, ear: _Ear, pid: int) -> _Told:
        """Take what a child tells, until it ends or its time is over.

        Its findings are read only if it comes to no end: what it tells last holds them all.
        """
        section, until = self.waiting[0], self._limit_section(self.waiting[0])
        found: list[bytes] = []
        while True:
            ear.pulse = self._tell_progress(section)
            kind, body = ear.hear(until)
            if kind == _FINDING:
                found.append(body)
                continue
            if kind == _END:
                self.findings += map(_decode, found)
                return self._take_over(pid, section, late=time.monotonic() >= until)
            content = _decode(body)
            if kind == _SECTION:
                section, until = content, self._limit_section(content)
            elif kind == _DONE:
                return _Told(section, content)
            elif kind == _REFUSED:
                raise PolicyError(content) if isinstance(content, list) else ValueError(content)
            else:
                raise KeyboardInterrupt(content)

    def _tell_progress(self, section: str) -> Callable[[], None] | None:
        """Return what tells how far the look is, while nothing is heard of it."""
        if self.progress is None:
            return None
        known = section in self.sections
        number = self.sections.index(section) + 1 if known else len(self.sections)
        return partial(self.progress, section, number, len(self.sections))

    def _take_over(self, pid: int, section: str, late: bool) -> _Told:
        """End a child that told no more, and say what of its look is missing."""
        status = _end(pid)
        if section == _AFTER_ALL:
            return _Told(section, (self.findings, ()))
        reason = f"the check was ended by signal {status & 127}"
        if late:
            reason = f"the check did not finish in --time-limit {self.options.time_limit:g} s"
        elif not status & 127:
            reason = "the check ended without an answer"
        self.findings.append(judge_unlooked(section, reason))
        return _Told(section)

    def _limit_section(self, section: str) -> float:
        """Return when a section is given up: each that comes after it has some time left then."""
        after = self.waiting[self.waiting.index(section) + 1 :] if section in self.waiting else []
        left = self.deadline - time.monotonic() - len(after) * self.options.time_limit * _RESERVE
        return time.monotonic() + max(left, _LEAST)

    def _look(self, writer: int) -> NoReturn:
        """Make the look, and tell of it. Runs in a child."""
        try:
            self._look_and_tell(writer)
        finally:
            os._exit(0)

    def _look_and_tell(self, writer: int) -> None:
        try:
            signal.signal(signal.SIGTERM, _leave)
            self._tell_all(writer)
        except PolicyError as error:
            _tell(writer, _REFUSED, list(error.problems))
        except (OSError, ValueError) as error:
            _tell(writer, _REFUSED, str(error))
        except KeyboardInterrupt as interrupt:
            _tell(writer, _INTERRUPTED, str(interrupt))
        finally:  # Who ends it sends that more than once, and no exception may leave this child.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})

    def _tell_all(self, writer: int) -> None:
        findings = list(self.findings)
        for section in self.waiting:
            _tell(writer, _SECTION, section)
            for finding in self._look_at(section):
                findings.append(finding)
                _tell(writer, _FINDING, finding)
        _tell(writer, _SECTION, _AFTER_ALL)
        finished = finish_findings(self.policy, self.options, findings, self.look)
        _tell(writer, _DONE, finished)

    def _look_at(self, section: str) -> Any:
        if section == _IMAGE:
            return look_at_image(self.policy, self.options)
        return look_at_section(section, self.policy, self.options, self.look)


def _leave(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # It is sent until we have ended.
    raise SystemExit(1)  # What was made is put away on the way out.


def _tell(writer: int, kind: int, content: object) -> None:
    body = pickle.dumps(content)
    message = _HEAD.pack(len(body), kind) + body
    while message:
        message = message[os.write(writer, message) :]


def _decode(body: bytes) -> Any:
    return pickle.loads(body)  # noqa: S301 - it comes from our own child


class _Ear:
    """The pipe of our own child, and what was read of it and not yet taken."""

    def __init__(self, reader: int) -> None:
        self._reader, self._heard = reader, bytearray()
        self.pulse: Callable[[], None] | None = None
        self._poller = select.poll()
        self._poller.register(reader, select.POLLIN)

    def hear(self, until: float) -> tuple[int, bytes]:
        """Return a message and its kind; :data:`_END` where none comes in time, or ever."""
        head = self._take(_HEAD.size, until)
        size, kind = _HEAD.unpack(head) if head else (0, _END)
        body = self._take(size, until) if 0 < size <= _MOST else b""
        return (kind, body) if body else (_END, b"")

    def _wait(self, until: float) -> bool:
        """Tell whether something came in time."""
        while True:
            left = max(0.0, until - time.monotonic())
            step = min(left, _LONGEST if self.pulse is None else _PULSE)
            if self._poller.poll(step * 1000):
                return True
            if step == left or self.pulse is None:
                return False
            self.pulse()

    def _take(self, size: int, until: float) -> bytes:
        while len(self._heard) < size:
            if not self._wait(until):
                return b""
            part = os.read(self._reader, _AT_ONCE)
            if not part:
                return b""
            self._heard += part
        taken = bytes(self._heard[:size])
        del self._heard[:size]
        return taken


def _hear_interrupt(ear: _Ear) -> str:
    """Return what the look says of how far it came when it was interrupted, if it does."""
    kind, body = _SECTION, b""
    until = time.monotonic() + _LEAST
    while kind not in (_END, _INTERRUPTED):
        kind, body = ear.hear(until)
    return str(_decode(body) or "") if body else ""


def _end(pid: int) -> int:
    """End a child, gently at first, and return its status; one that cannot be ended is left.

    One that has told all ends by itself, and is not disturbed at once.
    """
    strike = time.monotonic() + _AGAIN
    for number, patience in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, 1.0)):
        until = time.monotonic() + patience
        while time.monotonic() < until:
            try:
                done, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                return 0  # It was seen to end before.
            if done:
                return status
            if time.monotonic() >= strike:
                os.kill(pid, number)
                strike = time.monotonic() + _AGAIN
            time.sleep(0.001)
    return int(signal.SIGKILL)
