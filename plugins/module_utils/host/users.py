# SPDX-License-Identifier: BSD-2-Clause
"""Read users and groups as the C library knows them."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Sequence

from ..core.process_owner import find_owning_uid
from ..core.values import User
from .door import read_kernel_text
from .look import Process, read_process


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


def find_owner(process: Process, proc: str = "/proc") -> str:
    """Return the user who may have set the limits of a process; nothing where only root may have.

    :raises OSError, ValueError: If it has ended, so that nobody can tell: its id may be another's.
    """
    folder = f"{proc}/{process.pid}"
    try:
        loginuid = read_kernel_text(f"{folder}/loginuid").strip()
    except OSError:
        loginuid = ""  # A kernel without auditing keeps none.
    uid = find_owning_uid(read_kernel_text(f"{folder}/status"), process.cgroup, loginuid)
    uid = uid or process.uid
    if read_process(process.pid, proc).start != process.start:
        raise ProcessLookupError(f"process {process.pid} has ended")
    return name_user(uid) if uid else ""


def name_owners(owners: Sequence[str]) -> str:
    """Return one name for the owners of several processes; nothing where one is root's."""
    names = sorted(set(owners))
    if "" in names or not names:
        return ""
    return names[0] if len(names) == 1 else f"{len(names)} users"
