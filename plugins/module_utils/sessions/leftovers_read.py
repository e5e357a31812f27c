# SPDX-License-Identifier: BSD-2-Clause
"""Find what goes on with the limits it was started with: sessions that are open."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from typing import NamedTuple

from ..host.door import find_paths, read_kernel_text
from ..host.process import read_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.rlimit import Rlimit

_ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
_SCOPES = ("session-*.scope", "user@*.service/init.scope")


class OpenSession(NamedTuple):
    """One open login session or user manager, and the limits of its first process."""

    unit: str
    user: str
    pid: int
    limits: dict[str, Rlimit]


def find_open_sessions(proc: str = "/proc") -> Iterator[OpenSession]:
    """Yield every session that logind knows, by the cgroup it made for it."""
    for root in _ROOTS:
        for pattern in _SCOPES:
            for folder in find_paths(f"{root}/user.slice/user-*.slice/{pattern}"):
                session = _read_session(folder, proc)
                if session:
                    yield session


def _read_session(folder: str, proc: str) -> OpenSession | None:
    match = re.search(r"/user-([0-9]+)\.slice/([^/]+)", folder)
    try:
        pid = min(map(int, read_kernel_text(f"{folder}/cgroup.procs").split()), default=0)
        limits = read_limits(pid, proc)
    except (OSError, ValueError):
        return None  # It ended, or holds nothing any more.
    if match is None or pid == os.getpid():
        return None
    try:
        user = pwd.getpwuid(int(match[1])).pw_name
    except KeyError:
        user = match[1]
    return OpenSession(match[2], user, pid, limits)
