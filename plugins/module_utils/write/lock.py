# SPDX-License-Identifier: BSD-2-Clause
"""Let one run at a time read, plan and write, and clean up after one that was killed."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..host.door import open_file
from ..host.image import is_image
from ..host.scratch import CANARY, PROGRAMS, sweep
from .temporary import remove_abandoned

_PACKAGE_LOCKS = {
    "/var/lib/dpkg/lock": "dpkg",
    "/var/lib/rpm/.rpm.lock": "rpm",
    "/usr/lib/sysimage/rpm/.rpm.lock": "rpm",
}
# struct flock as fcntl(2) lays it out on 64-bit Linux: type, whence, start, length, pid.
_FLOCK = "hhqqi4x"


def find_editor(path: str) -> str:
    """Return the trace of an editor that has this file open (vim, nano, Emacs); or nothing."""
    folder, name = os.path.split(path)
    for trace in (f".{name}.swp", f".{name}.swo", f".#{name}"):
        if os.path.lexists(f"{folder}/{trace}"):
            return f"{folder}/{trace}"
    return ""


def find_package_run(locks: Iterable[str] = tuple(_PACKAGE_LOCKS)) -> str:
    """Return which package manager is installing now, with its pid; or nothing."""
    for path in locks:
        holder = _find_holder(path)
        if holder:
            return f"{_PACKAGE_LOCKS.get(path, path)} (pid {holder})"
    return ""


def _find_holder(path: str) -> int:
    """Ask who holds a lock, without taking it (F_GETLK)."""
    question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        handle = open_file(path)
    except OSError:
        return 0  # No such package manager here, or nothing that we may read.
    try:
        answer = fcntl.fcntl(handle, fcntl.F_GETLK, question)
    except OSError:
        return 0
    finally:
        os.close(handle)
    kind, _whence, _start, _length, pid = struct.unpack(_FLOCK, answer)
    return 0 if kind == fcntl.F_UNLCK else int(pid)


LOCK = "/run/mlhost-limits.lock"
PATIENCE = 120.0
"""Seconds to wait for another run; the longest part of one is a restart of Docker."""

_STAYS = "something is mounted in it, or is another user's, so it stays"


@contextmanager
def only_run(path: str = LOCK, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock for the length of a ``with`` block; it ends with the process, however it ends.

    :raises BlockingIOError: If another run still holds it after *patience* seconds.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        _wait(handle, path, patience)
        os.ftruncate(handle, 0)
        os.pwrite(handle, b"%d\n" % os.getpid(), 0)
        try:
            yield
        finally:
            if is_image():
                os.unlink(path)  # What is built holds nothing of how it was built.
    finally:
        os.close(handle)


def _wait(handle: int, path: str, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
                raise BlockingIOError(
                    f"another run (pid {holder}) holds {path}; waited {patience:.0f} s for it"
                ) from None
            time.sleep(0.1)
        else:
            return


def wait_for_packages(patience: float = PATIENCE) -> None:
    """Wait while packages are being installed, which may replace the very files we read.

    :raises OSError: If that still goes on after *patience* seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        who = find_package_run()
        if not who:
            return
        if time.monotonic() > deadline:
            raise OSError(f"{who} is installing packages; waited {patience:.0f} s for it to end")
        time.sleep(0.5)


def remove_leftovers(folders: Iterable[str], root: str = "/") -> list[str]:
    """Remove the temporary files in these folders, and what killed measurements left.

    :returns: A sentence for each path that is gone, or that could not be removed whole.
    """
    top = root.rstrip("/")
    gone = [
        f"{folder}/{name}"
        for folder in dict.fromkeys(folders)
        for name in remove_abandoned(f"{top}{folder}")
    ]
    swept = [sweep(f"{top}/run"), sweep(f"{top}{PROGRAMS}", CANARY)]
    gone += [path for one in swept for path in one.gone]
    left = [path for one in swept for path in one.left]
    return [
        *(f"{path}: left by a run that was killed, removed" for path in gone),
        *(f"{path}: left by a run that was killed; {_STAYS}" for path in left),
    ]
