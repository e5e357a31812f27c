# SPDX-License-Identifier: BSD-2-Clause
"""Read how much of a tmpfs a user may take: the quota that systemd sets since 258.

Sources: quotactl(2), ``struct if_dqblk`` of linux/quota.h, ``user-runtime-dir.c`` of systemd: an
ordinary user gets 80 % of /dev/shm and of /tmp at the first login, in bytes of that day's size,
where the kernel has CONFIG_TMPFS_QUOTA and the mount ``usrquota``; root never does. What statvfs(2)
tells knows nothing of it.
"""

from __future__ import annotations

import ctypes
import os
import re

from ..host.door import list_kernel_folder, open_kernel_folder, read_kernel_text
from ..kernel.boot_read import read_systemd_version
from .model import SHM, Quota, foresee_quota

_QUOTACTL_FD = 443  # The same on every machine.
_GET_USER = 0x80000700  # QCMD(Q_GETQUOTA, USRQUOTA)
_BLOCK = 1024
_SINCE = 258
_MOUNT = re.compile(r"^\S+ \S+ \S+ \S+ (/\S+) \S+.* - tmpfs \S+ (\S+)$", re.MULTILINE)
_USERS = "/run/user"


class _Block(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("hard", "soft", "used", "ihard", "isoft", "inodes")),
        *((name, ctypes.c_uint64) for name in ("btime", "itime")),
        ("valid", ctypes.c_uint32),
    )


def read_quota(uid: int, size: int, folder: str = SHM, pid: str = "self") -> Quota | None:
    """Return what a user may take of a tmpfs; ``None`` where no quota holds that user back.

    :param size: Of the tmpfs, in bytes.
    :param folder: Where it is for us.
    :param pid: A process that sees it as /dev/shm.
    :raises OSError: If that cannot be told.
    """
    if uid == 0 or not _has_quotas(pid):
        return None
    handle = open_kernel_folder(folder)
    try:
        hard, used = ask_quota(uid, handle)
    finally:
        os.close(handle)
    if hard:
        return Quota(hard, used)
    if (read_systemd_version() or 0) < _SINCE:
        return None
    return Quota(foresee_quota(size), used, is_set=False)


def list_users() -> list[int]:
    """Return who is logged in, root left out: systemd has made a folder for each."""
    try:
        return sorted(int(name) for name in list_kernel_folder(_USERS) if name.isdigit())[:100]
    except OSError:
        return []


def _has_quotas(pid: str) -> bool:
    mounts = _MOUNT.findall(read_kernel_text(f"/proc/{pid}/mountinfo"))
    options = [words for path, words in mounts if path == SHM]
    return bool(options) and "usrquota" in options[-1].split(",")


def ask_quota(uid: int, handle: int) -> tuple[int, int]:
    """Return the hard limit of a user, 0 for none, and what is used, in bytes.

    :param handle: A folder of the file system, open.
    :raises OSError: If it has no quotas, or they may not be read.
    """
    block = _Block()
    call = ctypes.CDLL(None, use_errno=True).syscall
    if call(_QUOTACTL_FD, handle, ctypes.c_uint(_GET_USER), uid, ctypes.byref(block)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"the quota of user {uid} cannot be read: {os.strerror(code)}")
    return int(block.hard) * _BLOCK, int(block.used)
