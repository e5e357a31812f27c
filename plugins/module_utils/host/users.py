# SPDX-License-Identifier: BSD-2-Clause
"""Read users and groups as the C library knows them."""

from __future__ import annotations

import grp
import os
import pwd

from ..core.user import User
from .door import read_kernel_text


def read_user(name: str) -> User | None:
    """Return a user with all groups, or ``None`` where there is none of that name."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    names = {gid: _group_name(gid) for gid in os.getgrouplist(name, entry.pw_gid)}
    known = {gid: group for gid, group in names.items() if group}
    return User(name, entry.pw_uid, entry.pw_gid, frozenset(known.values()), frozenset(known))


def is_root(name: str) -> bool:
    """Tell whether a name is that of user 0."""
    try:
        return pwd.getpwnam(name).pw_uid == 0
    except KeyError:
        return False


def name_user(uid: int) -> str:
    """Return the name of a user, or the number of one that has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""


def find_member(group: str) -> str | None:
    """Return one member of a group, listed or by primary group; ``None`` where it has none."""
    try:
        entry = grp.getgrnam(group)
    except KeyError:
        return None
    primary = (user.pw_name for user in pwd.getpwall() if user.pw_gid == entry.gr_gid)
    return next(iter(entry.gr_mem), None) or next(primary, None)


def find_connecting_user() -> str | None:
    """Return the user behind this process: who called sudo, or who logged in; never root."""
    name = os.environ.get("SUDO_USER", "")
    if not name:
        try:
            name = pwd.getpwuid(int(read_kernel_text("/proc/self/loginuid"))).pw_name
        except (OSError, KeyError, ValueError, OverflowError):
            return None
    return name if name != "root" else None
