# SPDX-License-Identifier: BSD-2-Clause
"""Find the service managers of users."""

from __future__ import annotations

import re
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .process import Process

_MANAGER = re.compile(r"^[^@]*/user@([0-9]+)\.service/init\.scope$", re.MULTILINE)


def find_user_managers(processes: Iterable[Process]) -> dict[int, Process]:
    """Return the service managers of users that run, by uid.

    A user may make cgroups below the own manager, of any name, and call a process as they like.
    """
    found: dict[int, Process] = {}
    for process in processes:
        match = _MANAGER.search(process.cgroup)
        if match and process.comm == "systemd" and process.uid == int(match[1]):
            found.setdefault(process.uid, process)
    return found
