# SPDX-License-Identifier: BSD-2-Clause
"""Find where units, cron, udev and rc.local mount /dev/shm anew after fstab did."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.declaration import Declaration
from ..kernel.boot_scripts import list_running
from .model import SHM, find_default, parse_tmpfs_size

_MOUNT = re.compile(rf"\b(u?mount)\b[^;&|#]*?{SHM}(?![\w.-]|/\w)[^;&|#]*")
_SIZE = re.compile(r"\b(?:size|nr_blocks)=[^\s,\"';&|]*")


def is_about_shm(text: str) -> bool:
    """Tell whether a script may mount /dev/shm."""
    return SHM in text and "mount" in text


def find_mounts(texts: Mapping[str, str], memory: int) -> list[Declaration]:
    """Return the lines that mount it, each with the size in bytes, or nothing: it is not plain.

    A remount without a size leaves it what it is, and is left out.

    :param texts: Text of what runs at boot, by path; of units, the whole file.
    :param memory: The host's, in bytes.
    """
    found = []
    for path, text in texts.items():
        for number, line in list_running(path, text):
            for call in _MOUNT.finditer(line):
                size = _read(call[0], call[1], memory)
                if size is not None:
                    found.append(Declaration(path, number, line, size))
    return found


def find_size(line: str) -> str:
    """Return the option of a line that gives the size; nothing where there is none."""
    calls = [_SIZE.findall(call[0]) for call in _MOUNT.finditer(line)]
    return next((sizes[-1] for sizes in calls if sizes), "")


def _read(call: str, program: str, memory: int) -> int | str | None:
    sizes = _SIZE.findall(call)
    if program == "umount" or (sizes and not sizes[-1].startswith("size=")):
        return ""
    if sizes:
        size = parse_tmpfs_size(sizes[-1].partition("=")[2], memory)
        return "" if size is None else size
    if "remount" in call:
        return None
    return find_default(memory) if "tmpfs" in call else ""
