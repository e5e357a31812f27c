# SPDX-License-Identifier: BSD-2-Clause
"""Look at /dev/shm as it is mounted, and at what a boot would mount."""

from __future__ import annotations

import os
import re

from ..core.cause import cite
from ..core.values import UNLIMITED
from ..host.files import read_text
from ..kernel.boot_loader import find_loader_mounts
from ..kernel.boot_loader_read import read_loader
from ..kernel.boot_scripts_read import read_boot_scripts
from ..kernel.boot_units_read import UNITS, is_masked
from .boot_mounts import is_about_shm
from .model import FSTAB, SHM

_APPLIER = "systemd-remount-fs.service"
_MOUNT = re.compile(r"^\S+ \S+ \S+ \S+ /dev/shm \S+.* - (\S+) ", re.MULTILINE)


def read_shm_size() -> int:
    """Return the size of /dev/shm in bytes; a tmpfs without any limit is unlimited.

    :raises OSError: If it is not a tmpfs, or cannot be looked at.
    """
    kinds = _MOUNT.findall(read_text("/proc/self/mountinfo") or "")
    if not kinds:
        raise OSError(f"{SHM} is not mounted")
    if kinds[-1] != "tmpfs":
        raise OSError(f"{SHM} is a {kinds[-1]}, not a tmpfs")
    found = os.statvfs(SHM)
    return found.f_blocks * found.f_frsize or UNLIMITED


def read_scripts(root: str = "/") -> dict[str, str]:
    """Return the text of what may mount it anew at boot, by path.

    On a host what packages bring has run, and shows; of a tree it is read.
    """
    return read_boot_scripts(root, of_packages=root != "/", is_wanted=is_about_shm)


def find_fstab_stop(root: str) -> str:
    """Say what keeps systemd from applying fstab to /dev/shm of a tree, before the file's name."""
    if is_masked(_APPLIER, root):
        return f"{UNITS}/{_APPLIER} is masked, and nothing else applies"
    word = next(find_loader_mounts(read_loader(root)), None)
    return f"{cite(word)} may keep systemd from applying" if word else ""


def read_fstab() -> str | None:
    """Return fstab's text; ``None`` where there is none."""
    return read_text(FSTAB)
