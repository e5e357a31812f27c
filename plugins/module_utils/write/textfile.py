# SPDX-License-Identifier: BSD-2-Clause
"""Replace a small file that programs read at any time: they find the old one or the new one."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from ..host.open_directory import ObstacleError, open_directory
from .temporary import pick_bare_name, remove_abandoned

_LARGEST = 64 * 2**20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def replace_text(path: str, text: str, mode: int = 0o644) -> None:
    """Write a file beside the old one, and let it take its place once it is on the disk.

    The folder may be another user's: it is opened once, through no link of theirs, and all else
    happens in what was opened. What a killed run left there is removed.

    :raises OSError: With the path and the reason; the old file stays whole then.
    """
    above, name = os.path.split(path)
    try:
        with _opened(above) as folder:
            remove_abandoned(folder)
            _replace(name, folder, text, mode)
    except ObstacleError as exc:
        raise OSError(f"{path}: could not be written ({exc.reason})") from exc
    except OSError as exc:
        reason = f"{path}: could not be written ({exc.strerror}); the old one stays as it is"
        raise OSError(reason) from exc


def read_written(path: str) -> bytes | None:
    """Return what :func:`replace_text` wrote; ``None`` where no file of this user is."""
    above, name = os.path.split(path)
    with contextlib.suppress(ObstacleError, OSError), _opened(above) as folder:
        handle = os.open(name, _READ, dir_fd=folder)
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                return file.read(_LARGEST)
    return None


def remove_written(path: str) -> None:
    """Remove what :func:`replace_text` wrote, and what killed runs left beside it.

    :raises OSError: If it could not be removed.
    """
    above, name = os.path.split(path)
    try:
        with _opened(above) as folder:
            remove_abandoned(folder)
            os.unlink(name, dir_fd=folder)
    except (ObstacleError, FileNotFoundError):
        return


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """Open a folder through no link of another user."""
    found = open_directory(path)
    try:
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=found)
    finally:
        os.close(found)
    try:
        yield folder
    finally:
        os.close(folder)


def _replace(name: str, folder: int, text: str, mode: int) -> None:
    temporary = pick_bare_name()
    try:
        _write(temporary, folder, text, mode)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def _write(name: str, folder: int, text: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(name, flags, 0o600, dir_fd=folder), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
