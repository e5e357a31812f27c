"""Start, list and stop guests, each in a folder of its own in the cache."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from . import connection, image, process, snapshot, warm
from .cache import HostError, cache_root, discard, locked, require_space
from .connection import Host
from .machine import add_overlay, launch
from .tree import make_disk

DEFAULT_RELEASE = "bookworm"
DEFAULT_NAME = "host"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,40}")
_INSTANCE_GIB = 1


def _instances() -> Path:
    return cache_root() / "instances"


def start(
    name: str = DEFAULT_NAME,
    release: str = DEFAULT_RELEASE,
    cold: bool = False,
    tree: Path | None = None,
) -> Host:
    """Return a guest that stays until ``stop``; one that already runs is returned.

    :param cold: Boot it instead of resuming the snapshot.
    :param tree: The root tree to boot, which came from this release.
    """
    host = find(name)
    if host is not None and (host.folder / "kept").exists():
        return host
    with _claimed(name) as folder:
        if tree is not None:
            make_disk(tree, folder / "root.ext4")
            add_overlay(folder, folder / "root.ext4", "raw", folder / "qemu.log")
        host = _bring_up(folder, release, cold)
        (folder / "kept").touch()
    return host


@contextmanager
def running(
    release: str = DEFAULT_RELEASE,
    name: str | None = None,
    cold: bool = False,
    disk: Path | None = None,
    saved: snapshot.Snapshot | None = None,
    new: bool = False,
) -> Iterator[Host]:
    """Hold a fresh guest for the length of a ``with`` block.

    :param name: A name nobody uses; without it, one is chosen.
    :param disk: The disk of another guest of this release to boot a copy of.
    :param saved: What ``snapshot.keep`` made of a guest of this release, to resume from; the
        clock goes on from there, and sshd answers a moment later.
    :param new: One that our library was never brought to.
    """
    with _claimed(name) as folder:
        try:
            if disk is not None:
                shutil.copy(disk, folder / "disk.qcow2")
            yield _bring_up(folder, release, cold, saved, new)
        finally:
            discard(folder)


def stop(name: str) -> None:
    """End a guest and remove its folder.

    :raises HostError: If there is no such guest.
    """
    folder = _instances() / _checked(name)
    if not folder.is_dir():
        raise HostError(f"there is no host {name!r}")
    discard(folder)


def find(name: str) -> Host | None:
    """Return the running guest of this name, if there is one."""
    return next((host for host in running_hosts() if host.name == _checked(name)), None)


def running_hosts() -> list[Host]:
    """Return the guests that are up, after removing what dead ones left."""
    with locked(_instances() / ".lock", "another process that looks at the hosts"):
        _prune()
    found = []
    for folder in sorted(_instances().iterdir()):
        try:
            port = int((folder / "port").read_text())
        except (OSError, ValueError):
            continue
        found.append(Host(folder.name, port, folder))
    return found


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise HostError(f"{name!r} is not a host name: letters, digits, '-', '_' and '.'")
    return name


def _prune() -> None:
    for folder in _instances().iterdir():
        if not folder.is_dir() or _has_owner(folder):
            continue
        if not ((folder / "kept").exists() and process.find_workers(folder)):
            discard(folder)


def _has_owner(folder: Path) -> bool:
    """Tell whether the process that claimed this folder still holds it."""
    try:
        with (folder / "owner").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


@contextmanager
def _claimed(name: str | None) -> Iterator[Path]:
    """Make a guest's folder and own it; on an error nothing of it stays."""
    with locked(_instances() / ".lock", "another process that looks at the hosts"):
        _prune()
        folder = _new_folder(name)
        owner = _own(folder)
    try:
        yield folder
    except BaseException:
        discard(folder)
        raise
    finally:
        owner.close()


def _own(folder: Path) -> IO[str]:
    file = (folder / "owner").open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _new_folder(name: str | None) -> Path:
    numbered = (f"host-{os.getpid()}-{count}" for count in itertools.count(1))
    for candidate in numbered if name is None else [_checked(name)]:
        folder = _instances() / candidate
        if not folder.exists():
            folder.mkdir()
            return folder
    raise HostError(f"host {name!r} is in use by another process")


def _bring_up(
    folder: Path,
    release: str,
    cold: bool,
    saved: snapshot.Snapshot | None = None,
    new: bool = False,
) -> Host:
    disk = image.build(release)
    given = (folder / "disk.qcow2").exists()
    cold = cold or given
    kept = saved is not None
    if saved is None and not cold:
        saved = snapshot.take(disk) if new else warm.take(disk)
    require_space(folder, _INSTANCE_GIB)
    log = folder / "qemu.log"
    if saved is None:
        if not given:
            add_overlay(folder, disk.disk, "raw", log)
        host = Host(folder.name, launch(disk, folder), folder)
    else:
        add_overlay(folder, saved.disk, "qcow2", log)
        host = Host(folder.name, launch(disk, folder, saved.memory), folder)
    connection.write_files(host, disk)
    if cold:
        connection.wait_until_settled(host)
    elif not kept:
        connection.set_clock(host)
    return host
