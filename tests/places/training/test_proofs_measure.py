# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file system promises is proved by two processes: a call that returns 0 does not count."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from mlhost_limits.host.children import run_in_children
from mlhost_limits.training import proofs_measure as proofs

PLAIN_OPEN, PLAIN_RENAME, PLAIN_MKDIR = os.open, os.rename, os.mkdir


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield handle
    os.close(handle)


def run(proof: Callable[[int], str], folder: int) -> str:
    report = run_in_children([partial(proof, folder)], 20)[0]
    assert not report.problem
    return str(report.value)


@pytest.mark.parametrize("name", proofs.PROOFS)
def test_a_local_disk_keeps_its_promises(name: str, folder: int) -> None:
    assert run(proofs.PROOFS[name], folder) == ""


def refuse(code: int) -> Callable[..., None]:
    def call(*_words: object, **_more: object) -> None:
        raise OSError(code, os.strerror(code))

    return call


def allow(*_words: object) -> None:
    """Stand for flock(2) of a mount that keeps locks to itself: it returns 0 for everyone."""


def test_a_lock_that_everyone_gets_is_seen(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs.fcntl, "flock", allow)
    assert run(proofs.prove_lock, folder) == "two processes hold the same lock at once"


def test_a_lock_that_stays_is_seen(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = proofs.fcntl.flock

    def keep(handle: int, how: int) -> None:
        if how != proofs.fcntl.LOCK_UN:
            plain(handle, how)

    monkeypatch.setattr(proofs.fcntl, "flock", keep)
    assert run(proofs.prove_lock, folder).startswith(
        "a lock that was let go stays held: [Errno 11]"
    )


def test_no_locks_for_the_second_process(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = proofs.fcntl.flock

    def fail(handle: int, how: int) -> None:
        (refuse(errno.ENOLCK) if how & proofs.fcntl.LOCK_NB else plain)(handle, how)

    monkeypatch.setattr(proofs.fcntl, "flock", fail)
    assert run(proofs.prove_lock, folder) == "[Errno 37] No locks available"


def test_no_locks_at_all(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs.fcntl, "flock", refuse(errno.ENOLCK))
    with pytest.raises(OSError, match="No locks available"):
        proofs.prove_lock(folder)


def test_a_file_that_both_create_is_seen(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        return PLAIN_OPEN(name, flags & ~os.O_EXCL, mode, dir_fd=dir_fd)

    monkeypatch.setattr(proofs.os, "open", forget)
    assert run(proofs.prove_create, folder) == "2 of two processes created the same file"


def test_a_creation_that_fails_is_seen(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            refuse(errno.EIO)()
        return PLAIN_OPEN(name, flags, mode)

    monkeypatch.setattr(proofs.os, "open", fail)
    assert run(proofs.prove_create, folder) == "[Errno 5] Input/output error"


def copy_over(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    """Stand for an object store, which renames by copying."""
    content = os.read(PLAIN_OPEN(old, os.O_RDONLY, dir_fd=src_dir_fd), 2**20)
    handle = PLAIN_OPEN(new, os.O_WRONLY | os.O_TRUNC, dir_fd=dst_dir_fd)
    for start in range(0, len(content), 512):
        os.write(handle, content[start : start + 512])
    os.close(handle)
    os.unlink(old, dir_fd=src_dir_fd)


def remove_first(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    os.unlink(new, dir_fd=dst_dir_fd)
    time.sleep(0.001)
    PLAIN_RENAME(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)


@pytest.mark.parametrize("rename", [copy_over, remove_first])
@pytest.mark.slow
def test_a_rename_in_steps_is_seen(
    rename: Callable[..., None], folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "_ROUNDS", 200)
    monkeypatch.setattr(proofs.os, "rename", rename)
    assert run(proofs.prove_rename, folder).startswith("a reader ")


def move_one_by_one(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    PLAIN_MKDIR(new, 0o700, dir_fd=dst_dir_fd)
    source, target = (PLAIN_OPEN(one, os.O_RDONLY, dir_fd=src_dir_fd) for one in (old, new))
    for name in os.listdir(source):
        time.sleep(0.001)  # Long enough for the reader to have its turn.
        PLAIN_RENAME(name, name, src_dir_fd=source, dst_dir_fd=target)
    os.close(source)
    os.close(target)
    os.rmdir(old, dir_fd=src_dir_fd)


@pytest.mark.slow
def test_a_directory_that_is_moved_file_by_file_is_seen(
    folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "_ROUNDS", 100)
    monkeypatch.setattr(proofs.os, "rename", move_one_by_one)
    expected = "a reader found a part of a directory that was renamed"
    assert run(proofs.prove_folder_rename, folder) == expected


def test_a_directory_that_replaces_a_full_one_is_seen(
    folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if old == "new":
            PLAIN_RENAME(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(proofs.os, "rename", lose)
    expected = "a directory took the place of another that was not empty"
    assert run(proofs.prove_folder_rename, folder) == expected


def test_a_reader_does_not_outlive_a_writer_that_fails(
    folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs.os, "rename", refuse(errno.EXDEV))
    started: list[int] = []
    plain = proofs._start

    def start(task: Callable[[], int]) -> int:
        started.append(plain(task))
        return started[-1]

    monkeypatch.setattr(proofs, "_start", start)
    with pytest.raises(OSError, match="cross-device"):
        proofs.prove_folder_rename(folder)
    with pytest.raises(ChildProcessError):
        os.waitpid(started[0], 0)
