"""Lay out the root tree of a release, as image builders hold one, and make a disk of it."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from . import image
from .recipe import DISK_SIZE
from .tool import run_tool

# The mount is seen by nobody else, and ends with the copy.
_COPY = 'mount -o loop,ro,noload "$1" /mnt && cp -a /mnt/. "$2"'


def unpack(release: str, folder: Path) -> None:
    """Fill a new folder with the tree of a release that nobody has booted. Needs root."""
    folder.mkdir(parents=True)
    words = ["unshare", "--mount", "sh", "-c", _COPY, "sh"]
    run_tool(
        [*words, image.build(release).disk, folder], folder.with_name(f"{folder.name}.log"), 300
    )


def make_disk(tree: Path, disk: Path) -> None:
    """Write the tree to a file system that a guest boots from."""
    words = ["mke2fs", "-q", "-t", "ext4", "-d"]
    run_tool([*words, tree, disk, DISK_SIZE], disk.with_suffix(".log"), 300)
