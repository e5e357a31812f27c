# SPDX-License-Identifier: BSD-2-Clause
"""Look at the directory of a workspace as it is now: its owner, its mode, its tmpfs."""

from __future__ import annotations

import grp
import os
import pwd
import stat

from ..host.door import read_kernel_text


def find_ids(owner: str, group: str) -> tuple[int, int]:
    """Return the numbers of a user and a group.

    :raises ValueError: If this host has no such one.
    """
    try:
        return pwd.getpwnam(owner).pw_uid, grp.getgrnam(group).gr_gid
    except KeyError:
        raise ValueError(f"this host has no user {owner}, or no group {group}") from None


def read_directory(path: str) -> tuple[int, int, int] | None:
    """Return owner, group and mode of a directory; ``None`` where there is none.

    :raises OSError: If it is something else.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{path}: is there, and is no directory")
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def read_tmpfs_size(path: str) -> int | None:
    """Return the size of the tmpfs that is mounted on a directory; ``None`` where none is."""
    lines = read_kernel_text("/proc/self/mounts").splitlines()
    kinds = [line.split()[2] for line in lines if line.split()[1] == path]
    if not kinds or kinds[-1] != "tmpfs":
        return None
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize
