# SPDX-License-Identifier: BSD-2-Clause
"""See who else is about to write a file: a person's editor, or the package manager."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterable

from .door import open_file

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
