# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the system calls of a provisioning run, and choose where to break it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_CALL = re.compile(r"([a-z_0-9]+)\((.*)")
_START = "mlhost-limits.lock"
_OPENS_TO_WRITE = re.compile(r"O_WRONLY|O_RDWR|O_CREAT")
_OURS = re.compile(r'"(/etc/(security|sysctl\.d|docker)|/var/lib/mlhost-|/run/|/proc/sys/)')

CHANGES = {
    **dict.fromkeys(("write", "pwrite64"), ("ENOSPC", "EIO", "EDQUOT")),
    **dict.fromkeys(("renameat2", "link"), ("EIO", "ENOSPC", "EROFS", "EDQUOT", "EACCES")),
    **dict.fromkeys(("fsync",), ("EIO", "ENOSPC", "EDQUOT", "EROFS")),
    **dict.fromkeys(("fchmod", "fchown", "fsetxattr"), ("EIO", "EROFS", "EACCES")),
    **dict.fromkeys(("mkdir", "unlink", "rmdir", "ftruncate", "flock"), ("EIO", "EROFS", "EACCES")),
}
"""The calls that change something on a disk, and the errors to give them."""

_TO_OPEN = {True: ("ENOSPC", "EROFS", "EIO", "EACCES", "EDQUOT"), False: ("EIO", "EACCES")}


class Call(NamedTuple):
    """The n-th call of this name in the whole process, as strace counts, with its arguments."""

    name: str
    number: int
    arguments: str

    @property
    def changes(self) -> bool:
        """Tell whether the disk may look different after it."""
        return self.name in CHANGES or self.opens_to_write

    @property
    def opens_to_write(self) -> bool:
        return self.name == "openat" and bool(_OPENS_TO_WRITE.search(self.arguments))

    @property
    def errors(self) -> tuple[str, ...]:
        """Return the errors that this call is worth being given."""
        if self.name == "openat" and _OURS.search(self.arguments):
            return _TO_OPEN[self.opens_to_write]
        return CHANGES.get(self.name, ())


class Point(NamedTuple):
    """One way to break a run: a call, and the error it gets or the signal that comes at it."""

    call: Call
    fault: str

    @property
    def tracer(self) -> tuple[str, ...]:
        """Return the strace command that breaks a run here."""
        kind = "signal" if self.fault == "KILL" else "error"
        inject = f"inject={self.call.name}:{kind}={self.fault}:when={self.call.number}"
        return ("strace", "--output=/dev/null", f"--trace={self.call.name}", "-e", inject)

    def __str__(self) -> str:
        return f"{self.fault} at {self.call.name} {self.call.number} ({self.call.arguments[:60]})"


def read_trace(text: str) -> list[Call]:
    """Return the calls of a run from the moment it takes the lock, with their counts."""
    counts: Counter[str] = Counter()
    calls = []
    for line in text.splitlines():
        match = _CALL.match(line)
        if match and match[1] != "restart_syscall":
            counts[match[1]] += 1
            calls.append(Call(match[1], counts[match[1]], match[2]))
    start = next(index for index, call in enumerate(calls) if _START in call.arguments)
    return [call for call in calls[start:] if not _is_last_word(call)]


def _is_last_word(call: Call) -> bool:
    """Tell whether the run is over and only says so; what it wrote stands."""
    return call.name == "exit_group" or (call.name == "write" and call.arguments.startswith("1,"))


def choose_kills(calls: list[Call], stride: int) -> Iterator[Point]:
    """Yield the points at which to kill: before and after each call that changes something.

    :param stride: Of the calls between them, which leave the disk as it is, every n-th.
    """
    for index, call in enumerate(calls):
        if call.changes or (index and calls[index - 1].changes) or index % stride == 0:
            yield Point(call, "KILL")


def choose_errors(calls: Iterable[Call]) -> Iterator[Point]:
    """Yield each call that reads or writes our files with each error it may meet."""
    for call in calls:
        for error in call.errors:
            yield Point(call, error)
