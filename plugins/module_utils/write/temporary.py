# SPDX-License-Identifier: BSD-2-Clause
"""Name the files that wait beside what they will replace, and rename without losing any."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from ..host.marks import is_abandoned, make_mark
from ..host.open_directory import ObstacleError, open_directory

_AT_FDCWD = -100
_NO_REPLACE, _EXCHANGE = 1, 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL)  # An old C library or kernel, NFS, some FUSE.


def swap(new: str, path: str) -> str:
    """Put *new* in the place of *path* in one step.

    :returns: Where the old file is now, the very same file with its times and attributes.
    :raises OSError: If there is no *path*; nothing is changed then.
    """
    if _renameat2(new, path, _EXCHANGE):
        return new
    aside = pick_name(path)
    os.link(path, aside)
    os.rename(new, path)
    return aside


def place(new: str, path: str) -> None:
    """Give *new* the name *path*.

    :raises FileExistsError: If the name is taken; nothing is changed then.
    """
    if not _renameat2(new, path, _NO_REPLACE):
        os.link(new, path)
        os.unlink(new)


def take_away(path: str) -> str:
    """Give *path* a name that nobody can guess, and return that."""
    aside = pick_name(path)
    os.rename(path, aside)
    return aside


def _renameat2(old: str, new: str, flags: int) -> bool:
    """Rename with flags; return whether that is supported here."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # glibc 2.28
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), new)


TEMPORARY_PREFIX = ".mlhost-"
"""What the names of our temporary files begin with; no daemon reads such a name."""

_MOST_NAMES = 100_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def pick_name(path: str) -> str:
    """Return a name beside *path* that nobody can guess and that says who made it."""
    return f"{os.path.dirname(path)}/{pick_bare_name()}"


def pick_bare_name() -> str:
    """Return such a name without a folder."""
    return f"{TEMPORARY_PREFIX}{make_mark()}"


def remove_abandoned(folder: str | int) -> list[str]:
    """Remove the temporary files that dead runs left in a folder; return their names.

    Whatever else has such a name, and a folder that is not there, is left alone.

    :param folder: A path, or what :func:`os.open` returned.
    """
    try:
        here = os.open(folder, _FOLDER) if isinstance(folder, str) else os.dup(folder)
    except OSError:
        return []
    try:
        return [name for name in _list_names(here) if _remove(name, here)]
    finally:
        os.close(here)


def _list_names(folder: int) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, _MOST_NAMES)]
        return sorted(name for name in names if name.startswith(TEMPORARY_PREFIX))
    return []


def _remove(name: str, folder: int) -> bool:
    """Remove a file of a dead run, unless somebody else may have made it; tell if it is gone."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not is_abandoned(name[len(TEMPORARY_PREFIX) :], found.st_ctime):
            return False
        # Nobody else makes one in a closed folder; it may have the owner of what it replaced.
        if not stat.S_ISDIR(found.st_mode) and (_is_closed(folder) or _is_ours(found)):
            os.unlink(name, dir_fd=folder)
            return True
    except OSError:
        pass  # It is gone, or it cannot be removed.
    return False


def _is_closed(folder: int) -> bool:
    found = os.fstat(folder)
    return _is_ours(found) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid in (0, os.geteuid())


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
    _require_file(name, folder)
    temporary = pick_bare_name()
    try:
        _write(temporary, folder, text, mode)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def _require_file(name: str, folder: int) -> None:
    """Refuse to put a file in the place of a device, a folder or the like; a link may be replaced.

    :raises OSError: If that is there.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise FileExistsError(errno.EEXIST, "it exists and is not a regular file")


def _write(name: str, folder: int, text: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(name, flags, 0o600, dir_fd=folder), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
