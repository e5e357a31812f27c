# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards of what root opens, writes and removes, each a function that takes it out."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    from replacing import find_module, replace  # type: ignore[import-not-found]
except ImportError:  # On the controller.
    from .replacing import find_module, replace


def follow_every_link() -> None:
    """Follow links on the way to a directory, whoever made them."""

    def read(link: int, _path: str, _owner: int, _count: int) -> str:
        return os.readlink("", dir_fd=link)

    replace("host.open_directory", "_read_link", read)


def write_anywhere() -> None:
    """Make a workspace wherever its path leads."""
    read = find_module("workspace.provision").read_directory
    replace("workspace.settle", "find_target", lambda path, *_others: os.path.realpath(path))
    replace("workspace.provision", "read_directory", lambda path: read(os.path.realpath(path)))


def open_what_is_there() -> None:
    """Open files by their path alone, whosever they are and whatever kind they have."""
    door = find_module("host.door")
    door._Walk.judge_end = lambda *_arguments: None

    def look(walk: Any, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=walk.handle, follow_symlinks=False)

    def open_file(path: str, root: str = "/") -> int:
        return os.open(path if root == "/" else f"{root}{path}", os.O_RDONLY | os.O_CLOEXEC)

    def open_inside(folder: int, name: str, *_others: object, **_more: object) -> int:
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)

    def connect(path: str, _deadline: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        return connection

    door._Walk.look = look
    replace("host.door", "open_file", open_file)
    replace("host.door", "connect", connect)
    replace("training.cache_open_read", "open_regular", open_inside)
    replace("training.cache_open_read", "find_stranger", lambda _handle: "")
    read = find_module("host.files").read_text
    replace("sessions.shell_files_read", "_read_startup", lambda path, _odd: read(path) or "")


def read_whatever_size() -> None:
    """Read files and answers however long they are."""
    errands, part = find_module("host.as_user").Errands, 65536
    start = errands.start

    def read(handle: int, _most: int, _path: str) -> bytes:
        with open(handle, "rb") as file:
            return b"".join(iter(lambda: file.read(part), b""))

    replace("host.door", "read_handle", read)
    errands.start = lambda self, name, one: start(self, name, one._replace(most=2**40))


def sweep_everything() -> None:
    """Remove what has a name of ours, wherever it leads."""

    def sweep(parent: str, prefix: str = "mlhost-limits-") -> Any:
        for name in os.listdir(parent):
            if name.startswith(prefix):
                shutil.rmtree(os.path.realpath(f"{parent}/{name}"), ignore_errors=True)
        return find_module("host.scratch").Swept([], [])

    replace("host.scratch", "sweep", sweep)


def cross_mounts() -> None:
    """Ask what is mounted in the place of a folder of ours."""

    def see(name: str, parent: int) -> int:
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=parent)

    replace("host.scratch", "see_inside", see)


def remove_trials() -> None:
    """Remove the folder of a trial by its path, whatever has that by then."""

    @contextmanager
    def trial(parent: int, name: str) -> Iterator[int]:
        os.mkdir(name, 0o700, dir_fd=parent)
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=parent)
        try:
            yield inner
        finally:
            os.close(inner)
            folder = os.readlink(f"/proc/self/fd/{parent}")
            for _dummy, _dummy2, names in os.walk(f"{folder}/{name}"):
                for one in names:
                    os.unlink(f"{folder}/{name}/{one}")
            shutil.rmtree(f"{folder}/{name}", ignore_errors=True)

    replace("host.trial_folder", "trial_folder", trial)


def trust_headers() -> None:
    """Believe the head of a file of weights."""
    part = 2**24

    def check(read: Any, _size: int) -> Any:
        end = 8 + int.from_bytes(read(0, 8), "little")
        json.loads(b"".join([read(at, min(part, end - at)) for at in range(8, end, part)]))
        return find_module("training.file_verdict").Verdict("sound")

    find_module("training.cache_look_read")._FORMATS["safetensors"] = check


def walk_by_calls() -> None:
    """Walk through folders by a function that calls itself."""
    checked = find_module("training.cache_read").Checked

    def walk(path: str, _deep: bool = False) -> Iterator[Any]:
        with os.scandir(path) as entries:
            for one in entries:
                if one.is_dir(follow_symlinks=False):
                    here = os.open(one.path, os.O_RDONLY)
                    yield from walk(f"/proc/self/fd/{here}")
                    os.close(here)
                else:
                    yield checked(one.path, "sound")

    replace("training.cache_read", "check_files", walk)


def map_files() -> None:
    """Map files instead of reading them."""

    def check(handle: int, *_others: object, **_more: object) -> Any:
        if os.fstat(handle).st_size:
            with mmap.mmap(handle, 0, prot=mmap.PROT_READ) as whole:
                for _again in range(50):
                    zlib.crc32(whole[:])
        return find_module("training.file_verdict").Verdict("sound")

    replace("training.cache_look_read", "check_open_file", check)


def move_by_path() -> None:
    """Move damaged files by their paths, wherever these lead by then."""

    def move(top: int, _aside: int, name: str) -> bool:
        folder = os.readlink(f"/proc/self/fd/{top}")
        os.rename(f"{folder}/{name}", f"{folder}/aside-{os.urandom(4).hex()}")
        return True

    replace("workspace.settle", "_move", move)
