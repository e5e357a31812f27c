# SPDX-License-Identifier: BSD-2-Clause
"""Read the file of a policy: a regular one, of a size that a person would write; or a pipe."""

from __future__ import annotations

import os
import select
import stat
import time

LARGEST = 2**20
STDIN = "-"
PATIENCE = 30.0
"""Seconds in which standard input must come to its end, at most."""


def read_policy_file(path: str, seconds: float = PATIENCE) -> bytes:
    """Return what a file holds; what is not a regular file is named, not opened, not waited for.

    :param path: ``-`` for standard input.
    :param seconds: In which standard input must come to its end.
    :raises OSError: If it is absent, not a regular file, or larger than 1 MiB.
    """
    if path == STDIN:
        return _read_stdin(0, min(seconds, PATIENCE))
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path}: is not a regular file")
        with os.fdopen(_open_again(handle, path), "rb") as file:
            content = file.read(LARGEST + 1)
    finally:
        os.close(handle)
    if len(content) > LARGEST:
        raise OSError(f"{path}: is larger than 1 MiB")
    return content


def _open_again(handle: int, path: str) -> int:
    """Open for reading what a handle stands for; a tree without /proc has its name alone."""
    try:
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError as error:
        error.filename = path  # The number is nothing to who asked.
        raise
    except FileNotFoundError:
        again = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if not os.path.samestat(os.fstat(again), os.fstat(handle)):
        os.close(again)
        raise OSError(f"{path}: became another file while it was opened")
    return again


def _read_stdin(handle: int, seconds: float) -> bytes:
    """Return all that standard input holds.

    :raises OSError: If it does not end in time, or is larger than 1 MiB.
    """
    content, until = b"", time.monotonic() + seconds
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    while poller.poll(max(0.0, until - time.monotonic()) * 1000):
        part = os.read(handle, LARGEST)
        content += part
        if len(content) > LARGEST:
            raise OSError("standard input: is larger than 1 MiB")
        if not part:
            return content
    raise OSError(f"standard input: did not end within {seconds:g} s; a policy is expected there")
