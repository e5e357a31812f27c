# SPDX-License-Identifier: BSD-2-Clause
"""Read the end of a run's log, of whatever size: a file, or standard input."""

from __future__ import annotations

import os
import time
from functools import partial

from ..core.values import NamedTuple
from ..host.door import ForeignError, open_file
from ..host.owned import ask_owner
from ..host.users import name_user

MOST = 2**20
"""Bytes that are read, from the end."""
_AT_ONCE = 2**16
_ESCAPED = 6  # Bytes that JSON may make of one.


class Log(NamedTuple):
    """The end of a log: its text, whether more stands before it, how many seconds ago it was last
    written, the name of its file, and as which user root has read it: 0 is root."""

    text: str
    is_cut: bool
    age: float = 0.0
    name: str = ""
    uid: int = 0


def read_log(path: str) -> Log:
    """Return the end of a file. Root reads what is a user's as that user.

    :raises OSError: If it is absent, not a regular file, or may not be read.
    """
    path = os.path.abspath(path)
    try:
        return Log(*_read_tail(path))
    except ForeignError as error:
        if not error.uid:
            raise
        return read_log_as(error.uid, path)


def read_log_as(uid: int, path: str) -> Log:
    """Return the end of a file that a user has named, as that user may read it.

    :raises OSError: If they may not, or it is not a regular file.
    """
    try:
        told = ask_owner(uid, partial(_read_tail, path), most=_ESCAPED * MOST + _AT_ONCE)
        text, is_cut, age = told
        return Log(str(text), bool(is_cut), float(age), uid=uid)
    except (OSError, TypeError, ValueError) as problem:
        raise OSError(f"{path}: as its owner, {name_user(uid)}: {problem}") from None


def _read_tail(path: str) -> tuple[str, bool, float]:
    handle = open_file(path)
    try:
        seen = os.fstat(handle)
        start = max(seen.st_size - MOST, 0)
        parts, left = [], MOST
        while left:
            part = os.pread(handle, min(left, _AT_ONCE), start + MOST - left)
            if not part:
                break
            parts.append(part)
            left -= len(part)
    finally:
        os.close(handle)
    text = b"".join(parts).decode("utf-8", "replace")
    return text, start > 0, max(time.time() - seen.st_mtime, 0.0)


def read_stream(handle: int = 0) -> Log:
    """Return the end of what a pipe brings until it is closed, however long that takes."""
    kept, size = b"", 0
    while True:
        part = os.read(handle, _AT_ONCE)
        if not part:
            break
        size += len(part)
        kept = kept + part if len(kept) < 2 * MOST else kept[-MOST:] + part
    return Log(kept[-MOST:].decode("utf-8", "replace"), size > MOST)
