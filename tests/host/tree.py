"""Lay out the root tree of a release, as image builders hold one, and make a disk of it."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
from pathlib import Path

from . import image
from .recipe import DISK_SIZE
from .tool import run_tool

_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9)}


def unpack(release: str, folder: Path) -> None:
    """Fill an empty folder with the tree of a release that nobody has booted. Needs root."""
    folder.mkdir(parents=True)
    log = folder.with_name(f"{folder.name}.log")
    disk = image.build(release).disk
    run_tool(["debugfs", "-R", f"rdump / {folder}", disk], log, 300)
    for name, (major, minor) in _DEVICES.items():
        node = folder / "dev" / name
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        node.chmod(0o666)


def make_disk(tree: Path, disk: Path) -> None:
    """Write the tree to a file system that a guest boots from."""
    run_tool(
        ["mke2fs", "-q", "-t", "ext4", "-d", tree, disk, DISK_SIZE], disk.with_suffix(".log"), 300
    )
