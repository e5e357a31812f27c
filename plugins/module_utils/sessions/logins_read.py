# SPDX-License-Identifier: BSD-2-Clause
"""Read what decides whether logins of this host go on to open: tasks, folders, PAM's options."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator

from ..core.user import User
from ..host.door import list_pids, read_kernel_text
from ..host.users import find_connecting_user, read_user
from .lockouts import Logins
from .measure import has_shell
from .pam_read import read_pam_files
from .pam_stack import find_pam_limits, flatten, read_limits_options

_SERVICES = ("sshd", "su", "su-l", "sudo", "sudo-i", "cron", "crond", "login", "systemd-user")
_WTMP = "/var/log/wtmp"


def read_logins(folders: Iterable[str]) -> Logins:
    """Return what there is to know about this host's logins.

    :param folders: Those that the policy names as ``chroot``.
    """
    admin = find_connecting_user()
    return Logins(
        tasks=dict(_find_tasks()),
        connecting=read_user(admin) if admin else None,
        wtmp=os.stat(_WTMP).st_size if os.path.exists(_WTMP) else 0,
        bare=[folder for folder in folders if not os.access(f"{folder}/bin/sh", os.X_OK)],
    )


def _find_tasks() -> Iterator[tuple[User, int]]:
    """Yield every user who may log in and runs something, with how many tasks."""
    for uid, running in sorted(count_tasks().items()):
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            continue
        user = read_user(entry.pw_name) if has_shell(entry) else None
        if user:
            yield user, running


def count_tasks(proc: str = "/proc") -> dict[int, int]:
    """Return the threads that run, by real user id, which is how the kernel counts nproc.

    The owner of /proc/PID would not do: it is root where a program may not be traced.
    """
    counts: dict[int, int] = {}
    for pid in list_pids(proc):
        try:
            text = read_kernel_text(f"{proc}/{pid}/status")
            fields = dict(line.partition(":")[::2] for line in text.splitlines())
            uid = int(fields["Uid"].split()[0])
            counts[uid] = counts.get(uid, 0) + int(fields["Threads"])
        except (OSError, KeyError):
            continue  # It ended between the listing and the look.
    return counts


def find_missing_conf() -> Iterator[tuple[str, str, str]]:
    """Yield the pam.d lines whose ``conf=`` file is absent: place, file and service."""
    files = read_pam_files()
    seen = set()
    for service in _SERVICES:
        try:
            lines = find_pam_limits(flatten(service, "session", files))
        except ValueError:
            continue  # libpam refuses this service whatever the limits are.
        for line in lines:
            conf = read_limits_options(line).conf
            if conf and line.place not in seen and not os.path.exists(conf):
                seen.add(line.place)
                yield line.place, conf, service
