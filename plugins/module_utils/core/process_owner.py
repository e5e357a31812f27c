# SPDX-License-Identifier: BSD-2-Clause
"""Say which user may have set the limits of a process, by what the kernel keeps of it.

Everybody may lower the limits of their own processes at any time (setrlimit(2)), so what such a
process has proves nothing of the host. A program with the set-user-ID bit runs with the limits of
its caller, who also chooses its name: so an effective uid of 0 is not enough. Source:
credentials(7), proc_pid_status(5), pam_loginuid(8), user@.service(5).
"""

from __future__ import annotations

import re

from .cgroup import split_rows
from .finding import FAIL, Finding

MAKER = "the container's maker"
"""Who decides what root does not of a container that root's engine runs."""

_UIDS = r"^Uid:((?:\s+[0-9]+){4})$"
_USER_UNIT = r"/user(?:-([0-9]+)\.slice|@([0-9]+)\.service)(?=/|$)"
_UNSET = 2**32 - 1


def find_owning_uid(status: str, cgroup: str, loginuid: str) -> int:
    """Return the user who may have set the limits of a process; 0 where only root may have.

    :param status: /proc/PID/status.
    :param cgroup: /proc/PID/cgroup. Only root moves a process out of a user's slice.
    :param loginuid: /proc/PID/loginuid: who logged in, or whose job of cron it is; empty where the
        kernel keeps none.
    :raises ValueError: If the status names no users.
    """
    found = re.search(_UIDS, status, re.MULTILINE)
    if found is None:
        raise ValueError("/proc/PID/status names no users")
    uids = [int(word) for word in found[1].split()]
    for _dummy, names, path in split_rows(cgroup):
        if names in ("name=systemd", ""):
            uids += [int(one or other) for one, other in re.findall(_USER_UNIT, path)]
    if loginuid.isdecimal() and int(loginuid) != _UNSET:
        uids.append(int(loginuid))
    return next((uid for uid in uids if uid), 0)


_OF_MAKER = {
    "containerd-changed-inside",
    "containerd-container-older",
    "containerd-own-spec",
    "docker-changed-inside",
    "docker-container-older",
    "docker-own-pids-limit",
    "docker-own-ulimit",
    "docker-pids-changed",
    "docker-shm-fixed",
    "docker-shm-mounted",
    "docker-shm-shared",
    "podman-changed-inside",
    "podman-container-created",
}
"""Causes that lie in a container that runs, and not in what the engine would give a new one."""


def own_running(finding: Finding, user: str = "") -> Finding:
    """Return the finding of a running container with whose doing it is.

    What runs in a container may lower its limits, and whoever makes it may state others. It is
    root's where the engine of root would give a new one too little as well.

    :param user: Whose engine runs it, empty for root's.
    """
    if finding.status != FAIL:
        return finding
    others = any(cause.code not in _OF_MAKER for cause in finding.causes)
    return finding._replace(owner=user or ("" if others else MAKER))
