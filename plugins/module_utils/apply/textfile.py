# SPDX-License-Identifier: BSD-2-Clause
"""Replace a small file that programs read at any time: they find the old one or the new one."""

from __future__ import annotations

import os

from .lock import TEMPORARY_PREFIX


def replace_text(path: str, text: str, mode: int = 0o644) -> None:
    """Write a file beside the old one, and let it take its place once it is on the disk.

    Only one run at a time may do so for one path. What a killed one left is written over.

    :raises OSError: With the path and the reason; the old file stays whole then.
    """
    folder, name = os.path.split(path)
    temporary = f"{folder}/{TEMPORARY_PREFIX}{name}"
    try:
        _write(temporary, text, mode)
        os.rename(temporary, path)
        _sync(folder)
    except OSError as exc:
        _remove(temporary)
        reason = f"{path}: could not be written ({exc.strerror}); the old one stays as it is"
        raise OSError(reason) from exc


def _write(path: str, text: str, mode: int) -> None:
    _remove(path)  # The folder may be another user's: nothing that is there is opened.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # There is none; or the folder cannot be written, which is said soon.


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
