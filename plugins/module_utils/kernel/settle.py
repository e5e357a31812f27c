# SPDX-License-Identifier: BSD-2-Clause
"""Write running sysctl values; the ones written are put back if a later one is refused."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from .read import read_sysctl, sysctl_path

_READ_ONLY = (
    "/proc/sys is read-only here, as in a container: set it on the host that runs the container,"
    " and leave the section kernel out here"
)


def apply_sysctls(writes: Iterable[tuple[str, str]], proc: str = "/proc") -> list[tuple[str, str]]:
    """Write each value and return the old ones, newest first: applying those undoes it.

    :raises OSError: Naming the key; the values written before it are as they were.
    """
    undo: list[tuple[str, str]] = []
    for key, value in writes:
        before = read_sysctl(key, proc)
        try:
            _write(sysctl_path(key, proc), value)
        except OSError as exc:
            apply_sysctls(undo, proc)
            reason = _READ_ONLY if exc.errno == errno.EROFS else os.strerror(exc.errno or 0)
            raise OSError(f"{key} = {value}: {reason}") from exc
        undo.insert(0, (key, before or ""))
    return undo


def _write(path: str, value: str) -> None:
    handle = os.open(path, os.O_WRONLY)  # Never O_CREAT: a key that is absent stays absent.
    try:
        os.write(handle, value.encode("ascii") + b"\n")
    finally:
        os.close(handle)
