# SPDX-License-Identifier: BSD-2-Clause
"""Find values of daemon.json and of flags with which the dockerd of a tree may not start."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..host.files import read_text
from .flags import declare_flag
from .model import World

_USERNS, _DRIVER = "userns-remap", "storage-driver"
_MADE_BY_DOCKERD = "default"
_DRIVERS = (
    *("overlay2", "overlay", "fuse-overlayfs", "btrfs", "zfs", "vfs", "aufs", "devicemapper"),
    *("overlayfs", "native"),  # Of containerd's image store.
)


def find_daemon_doubt(world: World, root: str) -> str:
    """Return why dockerd may not start by a value that names something else; or nothing."""
    for key, value, place in _list_stated(world):
        if key == _DRIVER and value and value not in _DRIVERS:
            return f"{place}: no {_DRIVER} {value!r} is known, and dockerd may not start"
        if key == _USERNS and value and value != _MADE_BY_DOCKERD:
            missing = _find_missing(value.partition(":")[0], root)
            if missing:
                return (
                    f"{place}: {_USERNS} {value!r} is not in {missing}, and dockerd may not start"
                )
    return ""


def _list_stated(world: World) -> Iterator[tuple[str, str, str]]:
    """Yield what is stated by key, with its place."""
    for flag in world.flags:
        at = declare_flag(flag)
        yield flag.name, flag.value, f"{at.place}: {at.text}"
    try:
        stated = json.loads(world.text or "{}")
    except ValueError:
        return  # That is told as such.
    for key, value in stated.items() if isinstance(stated, dict) else ():
        yield key, value if isinstance(value, str) else "", world.path


def _find_missing(user: str, root: str) -> str:
    """Return the file of a tree that lacks a user."""
    rows = [row.split(":") for row in (read_text("/etc/passwd", root) or "").split("\n")]
    names = {row[0] for row in rows if user in (row[0], *row[2:3])}
    if not names:
        return "/etc/passwd"
    for path in ("/etc/subuid", "/etc/subgid"):
        owners = {row.split(":")[0] for row in (read_text(path, root) or "").split("\n")}
        if owners.isdisjoint((*names, user)):
            return path
    return ""
