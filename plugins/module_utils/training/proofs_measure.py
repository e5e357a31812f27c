# SPDX-License-Identifier: BSD-2-Clause
"""Prove with two processes what a file system promises: a system call that returns 0 does not.

Every function gets an open folder of its own, works relative to it, and returns what went wrong,
or nothing. All run in a child that is killed with the children it has where it takes too long.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..host.open_directory import is_there

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILES = 8
_ROUNDS, _RENAMES = 32, 8
"""A rename may wait for the disk, and who reads beside it does not rest: a few show enough."""
_SIZE = 16384
_SEEN, _BAD = 0, 200  # Above every errno.


def prove_lock(folder: int) -> str:
    """See that flock(2) keeps a second process out while it is held, and lets it in after."""
    holder = os.open("lock", _CREATE, 0o600, dir_fd=folder)
    fcntl.flock(holder, fcntl.LOCK_EX)
    held = _wait(_start(lambda: _try_lock(folder)))
    fcntl.flock(holder, fcntl.LOCK_UN)
    free = _wait(_start(lambda: _try_lock(folder)))
    if held == 0:
        return "two processes hold the same lock at once"
    if held not in (errno.EAGAIN, errno.EACCES):
        return _name(held)
    return f"a lock that was let go stays held: {_name(free)}" if free else ""


def _try_lock(folder: int) -> int:
    fcntl.flock(os.open("lock", _OPEN, dir_fd=folder), fcntl.LOCK_EX | fcntl.LOCK_NB)
    return 0


def prove_create(folder: int) -> str:
    """See that of two processes that create the same file with O_EXCL, one is refused."""
    pids = [_start(lambda mine=mine: _race(folder, mine)) for mine in (b"1", b"2")]  # type: ignore[misc]
    for status in [_wait(pid) for pid in pids]:  # Both: none may still write while it is cleaned.
        if status:
            return _name(status)
    for number in range(_ROUNDS):
        won = b"".join(
            _read(folder, f"{number}-{mine}")
            for mine in (1, 2)
            if is_there(folder, f"{number}-{mine}")
        )
        if len(won) != 1:
            return f"{len(won)} of two processes created the same file"
    return ""


def _race(folder: int, mine: bytes) -> int:
    """Create files that another process creates as well, and note each that was ours."""
    for number in range(_ROUNDS):
        try:
            os.close(os.open(f"{number}", _CREATE, 0o600, dir_fd=folder))
        except FileExistsError:
            continue
        note = os.open(f"{number}-{mine.decode()}", _CREATE, 0o600, dir_fd=folder)
        os.write(note, mine)
        os.close(note)
    return 0


def prove_rename(folder: int) -> str:
    """See that a reader finds the old or the new file while it is replaced by rename(2)."""
    _write(folder, "file", b"\0" * _SIZE)
    with _beside(lambda: _read_until_end(folder)) as reader:
        for number in range(1, _RENAMES + 1):
            _write(folder, "new", bytes([number]) * _SIZE)
            os.rename("new", "file", src_dir_fd=folder, dst_dir_fd=folder)
        status = _wait(reader)
    if status == _BAD:
        return "a reader found a part of a file that was replaced by rename"
    return f"a reader of a file that was replaced by rename got {_name(status)}" if status else ""


def _read_until_end(folder: int) -> int:
    """Read the file until its last generation is there; each time all of it is of one."""
    last = bytes([_RENAMES]) * _SIZE
    while True:
        content = _read(folder, "file")
        if content == last:
            return _SEEN
        if len(content) != _SIZE or len(set(content)) != 1:
            return _BAD


def prove_folder_rename(folder: int) -> str:
    """See that a directory appears under its new name with all that is in it, and none is lost."""
    with _beside(lambda: _list_until_end(folder)) as reader:
        for number in range(_RENAMES):
            _make_full_one(folder)
            os.rename("new", f"done-{number}", src_dir_fd=folder, dst_dir_fd=folder)
        status = _wait(reader)
    if status == _BAD:
        return "a reader found a part of a directory that was renamed"
    if status:
        return f"a reader of a directory that was renamed got {_name(status)}"
    return _rename_onto_a_full_one(folder)


def _make_full_one(folder: int) -> None:
    """Make a directory with files in it."""
    os.mkdir("new", 0o700, dir_fd=folder)
    inner = os.open("new", _FOLDER, dir_fd=folder)
    for name in range(_FILES):
        os.close(os.open(f"{name}", _CREATE, 0o600, dir_fd=inner))
    os.close(inner)


def _list_until_end(folder: int) -> int:
    """Look into each directory as soon as it has its name: all files must be in it."""
    for number in range(_RENAMES):
        while not is_there(folder, f"done-{number}"):
            pass
        inner = os.open(f"done-{number}", _FOLDER, dir_fd=folder)
        if len(os.listdir(inner)) != _FILES:
            return _BAD
        os.close(inner)
    return _SEEN


def _rename_onto_a_full_one(folder: int) -> str:
    """See that a directory with something in it is not replaced."""
    try:
        os.rename("done-0", "done-1", src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as exc:
        return "" if exc.errno in (errno.ENOTEMPTY, errno.EEXIST) else _name(exc.errno or 0)
    return "a directory took the place of another that was not empty"


PROOFS: dict[str, Callable[[int], str]] = {
    "flock": prove_lock,
    "O_EXCL": prove_create,
    "rename": prove_rename,
    "directory rename": prove_folder_rename,
}


def _start(task: Callable[[], int]) -> int:
    """Run something in a second process, which ends with what it returns or with an errno."""
    pid = os.fork()
    if pid == 0:
        status = _BAD + 1
        try:
            status = task()
        except OSError as exc:
            status = exc.errno or status
        finally:
            os._exit(status)
    return pid


@contextmanager
def _beside(task: Callable[[], int]) -> Iterator[int]:
    """Run something in a second process that does not outlive a failure of ours.

    It is waited for: until it has ended, it holds the folder, which nobody can then unmount.
    """
    pid = _start(task)
    try:
        yield pid
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        _wait(pid)
        raise


def _wait(pid: int) -> int:
    return os.waitpid(pid, 0)[1] >> 8


def _name(code: int) -> str:
    return f"[Errno {code}] {os.strerror(code)}" if code < _BAD else "the second process failed"


def _write(folder: int, name: str, content: bytes) -> None:
    handle = os.open(name, _CREATE, 0o600, dir_fd=folder)
    os.write(handle, content)
    os.close(handle)


def _read(folder: int, name: str) -> bytes:
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(handle, 2 * _SIZE)
    finally:
        os.close(handle)
