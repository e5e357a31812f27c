# SPDX-License-Identifier: BSD-2-Clause
"""The one door through which files are opened: root opens only what is root's, all the way down.

A path is walked folder by folder, each by a descriptor, and no name is opened twice. Whoever is
not root may open what the kernel lets them: the rule is for root, whom nothing else would stop.
"""

from __future__ import annotations

import errno
import glob
import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from ..core.values import NamedTuple

_WALK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
_MOST_PARTS = 256
_AT_ONCE = 65536
_MOST_OF_KERNEL = 16 * 2**20


class ForeignError(OSError):
    """Something on the way to a file is not root's. ``path`` says what, ``uid`` whose it is.

    ``uid`` is 0 where it is root's and others may write to it.
    """

    def __init__(self, path: str, uid: int, reason: str) -> None:
        super().__init__(f"{path}: {reason}, so root does not open what it leads to")
        self.path = path
        self.uid = uid


class LoopError(OSError):
    """Links lead in a ring, so that nobody can open what has the name."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: is a loop of symbolic links")


class Place(NamedTuple):
    """Where a walk ended: an open folder, a name in it, and what has this name.

    ``path`` is the path inside the tree with every link followed; ``found`` is ``None`` where
    nothing has the name. ``name`` is ``"."`` for the top of the tree.
    """

    folder: int
    name: str
    path: str
    found: os.stat_result | None


class _Walk:
    """One walk through a tree. Holds the open folders from its top to where it is."""

    def __init__(self, path: str, root: str) -> None:
        top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.path = path
        self.folders = [(top, "", os.fstat(top))]
        self.judges = os.geteuid() == 0
        self.owners = (0, self.folders[0][2].st_uid)
        self.open_to_others = ""

    def close(self) -> None:
        while self.folders:
            os.close(self.folders.pop()[0])

    @property
    def here(self) -> str:
        return "/".join(name for _handle, name, _found in self.folders)

    @property
    def handle(self) -> int:
        return self.folders[-1][0]

    def look(self, name: str) -> os.stat_result:
        """Return what has a name here, a link as the link that it is.

        :raises ForeignError: If it is somebody else's than the tree's own: a host's is root's.
        """
        found = os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        folder = self.folders[-1][2]
        owners = self.owners if folder.st_uid == 0 else (folder.st_uid,)
        if self.judges and found.st_uid not in owners:
            reason = f"belongs to uid {found.st_uid}"
            raise ForeignError(f"{self.here}/{name}", found.st_uid, reason)
        if _is_open_to_others(folder) and not _stays(folder, found):
            self.open_to_others = self.open_to_others or self.here or "/"
        return found

    def enter(self, name: str) -> None:
        handle = os.open(name, _WALK | os.O_DIRECTORY, dir_fd=self.handle)
        self.folders.append((handle, name, os.fstat(handle)))

    def leave(self, steps: int = 1) -> None:
        for _step in range(min(steps, len(self.folders) - 1)):
            os.close(self.folders.pop()[0])

    def judge_end(self, found: os.stat_result, path: str) -> None:
        """Refuse what is there if somebody else may have put it there, or may change it.

        :raises ForeignError: If so.
        """
        if stat.S_ISREG(found.st_mode) and _is_open_to_others(found):
            self.open_to_others = self.open_to_others or path
        if self.judges and self.open_to_others:
            raise ForeignError(self.open_to_others, 0, "can be changed by users other than root")


def _is_open_to_others(found: os.stat_result) -> bool:
    """Tell whether another than the owner may write; the group of root is root's."""
    by_group = bool(found.st_mode & stat.S_IWGRP) and found.st_gid != 0
    return by_group or bool(found.st_mode & stat.S_IWOTH)


def _stays(folder: os.stat_result, found: os.stat_result) -> bool:
    """Tell whether nobody but its owner can take an entry out of an open folder, or put it there.

    A sticky folder such as /tmp keeps the owner's; a second name may have been given by others.
    """
    mine = found.st_uid == folder.st_uid and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1)
    return bool(folder.st_mode & stat.S_ISVTX) and mine


@contextmanager
def walk(path: str, root: str = "/") -> Iterator[Place]:
    """Walk to a path of a tree, links followed inside of it, and hold its folder open.

    :raises FileNotFoundError, NotADirectoryError: If a folder on the way is absent.
    :raises ForeignError: If root asks, and somebody else may decide what is there.
    :raises LoopError: If the links form a loop.
    """
    steps = _Walk(path, root)
    try:
        with _naming(steps, root):
            yield _go(steps)
    finally:
        steps.close()


@contextmanager
def _naming(steps: _Walk, root: str) -> Iterator[None]:
    """Have an error name the way from the top, of which the kernel tells one step alone."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str) and "/" not in error.filename:
            error.filename = f"{root.rstrip('/')}{steps.here}/{error.filename}"
        raise


def _go(steps: _Walk) -> Place:
    parts, links = _split(steps.path), 0
    while parts:
        part = parts.pop(0)
        if part == "..":
            steps.leave()
            continue
        try:
            found = steps.look(part)
        except FileNotFoundError:
            if parts:
                raise _absent(steps.path) from None
            return Place(steps.handle, part, f"{steps.here}/{part}", None)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS or len(parts) > _MOST_PARTS:
                raise LoopError(steps.path)
            target = os.readlink(part, dir_fd=steps.handle)
            steps.leave(len(steps.folders) if target.startswith("/") else 0)
            parts = [*_split(target), *parts]
        elif parts:
            steps.enter(part)
        else:
            path = f"{steps.here}/{part}"
            steps.judge_end(found, path)
            return Place(steps.handle, part, path, found)
    top = steps.folders[-1][2]
    steps.judge_end(top, steps.here or "/")
    return Place(steps.handle, ".", steps.here or "/", top)


def _absent(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def open_file(path: str, root: str = "/") -> int:
    """Return a descriptor of a regular file, open for reading.

    :raises FileNotFoundError, NotADirectoryError, IsADirectoryError: As open(2) would say.
    :raises ForeignError: If root asks, and it is not root's all the way down.
    :raises OSError: If it is not a regular file, or a link that leads nowhere.
    """
    with walk(path, root) as place:
        if place.found is None:
            raise _absent(path)
        if stat.S_ISDIR(place.found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(place.found.st_mode):
            raise NoFileError(path, place.found)
        return _open_found(place.folder, place.name, place.found, path)


def _open_found(folder: int, name: str, found: os.stat_result, path: str) -> int:
    handle = os.open(name, _FILE, dir_fd=folder)
    opened = os.fstat(handle)
    if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
        os.close(handle)
        raise OSError(f"{path}: was replaced while it was opened")
    return handle


@contextmanager
def hold_folder(path: str, root: str = "/") -> Iterator[Callable[[str], int | None]]:
    """Walk to a folder once, and yield what opens the regular files in it by name.

    That returns ``None`` for what is not a regular file, which takes a walk of its own.

    :raises FileNotFoundError, NotADirectoryError, ForeignError, LoopError: As :func:`walk` does.
    """
    steps = _Walk(path, root)
    try:
        with _naming(steps, root):
            place = _go(steps)
            if place.name != ".":
                steps.enter(place.name)
        yield partial(_open_in, steps)
    finally:
        steps.close()


def _open_in(steps: _Walk, name: str) -> int | None:
    open_to_others = steps.open_to_others
    try:
        found = steps.look(name)
        if not stat.S_ISREG(found.st_mode):
            return None
        path = f"{steps.here}/{name}"
        steps.judge_end(found, path)
        return _open_found(steps.handle, name, found, path)
    finally:
        steps.open_to_others = open_to_others  # One file says nothing of the next.


class NoFileError(OSError):
    """What has the name is a pipe, a socket or a device: it is never opened."""

    def __init__(self, path: str, found: os.stat_result) -> None:
        super().__init__(f"{path}: is {_name_kind(found.st_mode)}, not a regular file")
        self.is_empty = stat.S_ISFIFO(found.st_mode) or _is_null(found)


def _is_null(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(1, 3)


def _name_kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def open_folder(path: str, root: str = "/") -> int:
    """Return a descriptor of a folder, open for listing. Raises as :func:`open_file` does."""
    with walk(path, root) as place:
        if place.found is None:
            raise _absent(path)
        return os.open(place.name, _FOLDER, dir_fd=place.folder)


def list_links(path: str, root: str = "/") -> list[str]:
    """Return the names of the links in a folder, sorted, without a look at each file."""
    handle = open_folder(path, root)
    try:
        with os.scandir(handle) as entries:
            return sorted(entry.name for entry in entries if entry.is_symlink())
    finally:
        os.close(handle)


def connect(path: str, deadline: float) -> socket.socket:
    """Return a connection to a Unix socket, with the time that is left as its time limit.

    :param deadline: By the clock of ``time.monotonic``.
    :raises FileNotFoundError: If there is none.
    :raises ForeignError: If root asks, and it is not root's, or somebody else answers.
    :raises OSError: If nobody answers.
    """
    with walk(path) as place:
        if place.found is None:
            raise _absent(path)
        if not stat.S_ISSOCK(place.found.st_mode):
            raise OSError(f"{path}: is not a socket")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(max(deadline - time.monotonic(), 0.01))
            connection.connect(f"/proc/self/fd/{place.folder}/{place.name}")
            uid = read_peer(connection)[1]
            if os.geteuid() == 0 and uid != 0:
                raise ForeignError(path, uid, f"is answered by uid {uid}")
        except BaseException:
            connection.close()
            raise
    return connection


def read_peer(connection: socket.socket) -> tuple[int, int]:
    """Return the process id and the user id of who listens; a socket of systemd's is process 1's.

    Source: SO_PEERCRED of unix(7).
    """
    answer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, _gid = struct.unpack("3i", answer)
    return pid, uid


def read_handle(handle: int, most: int, path: str) -> bytes:
    """Return what an open file holds, and close it.

    :raises OSError: If it is larger than *most* bytes.
    """
    try:
        parts = [os.read(handle, _AT_ONCE)]
        size = len(parts[0])
        while parts[-1] and size <= most:
            parts.append(os.read(handle, _AT_ONCE))
            size += len(parts[-1])
    finally:
        os.close(handle)
    if size > most:
        raise OSError(f"{path}: is larger than {most} bytes")
    return b"".join(parts)


def list_pids(proc: str = "/proc") -> list[int]:
    """Return the processes that there are, as /proc lists them."""
    return [int(name) for name in os.listdir(proc) if name.isdigit()]


def list_kernel_folder(path: str) -> list[str]:
    """Return the names in a folder of /proc, /sys or /dev/shm."""
    return os.listdir(path)


def open_kernel_folder(path: str) -> int:
    """Return a descriptor of a folder of /proc, /sys or /dev/shm, for a question to the kernel."""
    return os.open(path, _FOLDER)


def find_paths(pattern: str) -> list[str]:
    """Return the paths that match a pattern, sorted; nothing is opened but the folders."""
    return sorted(glob.glob(pattern))


def read_kernel_text(path: str) -> str:
    """Return a file of /proc or /sys as text; see :func:`read_kernel_file`."""
    return read_kernel_file(path).decode("utf-8", "replace")


def count_kernel_lines(path: str) -> int:
    """Return how many lines a file of /proc has, of whatever size.

    :raises OSError: If it is absent, or may not be read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        lines, part = 0, os.read(handle, _AT_ONCE)
        while part:
            lines += part.count(b"\n")
            part = os.read(handle, _AT_ONCE)
        return lines
    finally:
        os.close(handle)


def read_kernel_file(path: str, most: int = _MOST_OF_KERNEL) -> bytes:
    """Return a file of /proc or /sys, whose owner says nothing: the kernel makes it.

    :param path: With no part that a user named but a number.
    :raises OSError: If it is absent, or larger than *most* bytes.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    return read_handle(os.open(path, flags), most, path)
