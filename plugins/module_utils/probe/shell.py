# SPDX-License-Identifier: BSD-2-Clause
"""Find out whether a person's shell starts under given limits: an open session is not enough."""

from __future__ import annotations

import os
import pwd
from functools import partial

from .children import run_in_children
from .libpam import set_own_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from ..policy.rlimit import Rlimit

_TIME_LIMIT = 20.0
_FAILED = 127


def find_failing_shells(
    sessions: Sequence[tuple[str, Mapping[str, Rlimit]]],
) -> list[str]:
    """Start the shell of each user under these limits, to do nothing (``-c :``).

    With too few descriptors or too little memory, a login ends right after PAM let it in.

    :param sessions: Users of this host, and the limits of a session of theirs.
    :returns: For each why the shell did not start, or nothing.
    """
    tasks = [partial(_start, user, limits) for user, limits in sessions]
    reports = run_in_children(tasks, _TIME_LIMIT)
    return [report.problem or str(report.value) for report in reports]


def _start(user: str, limits: Mapping[str, Rlimit]) -> str:
    """Start one shell. Runs in a child, which lives on to tell of it."""
    entry = pwd.getpwnam(user)
    pid = os.fork()
    if pid == 0:
        shell = entry.pw_shell or "/bin/sh"
        enter_shell(entry, limits, [shell, "-c", ":"])
    status = os.waitpid(pid, 0)[1]
    if status == 0:
        return ""
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an error"
    return f"{entry.pw_shell} ends with {how}"


def enter_shell(
    entry: pwd.struct_passwd, limits: Mapping[str, Rlimit], words: Sequence[str]
) -> NoReturn:
    """Become a person's shell, as a login does. Runs in a child."""
    try:
        become(entry, limits)
        if os.access(entry.pw_dir, os.X_OK):
            os.chdir(entry.pw_dir)
        names = {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}
        shell = entry.pw_shell or "/bin/sh"
        environment = {**names, "SHELL": shell, "PATH": "/usr/bin:/bin"}
        os.execve(shell, list(words), environment)  # noqa: S606 - a login's own
    except (OSError, ValueError, MemoryError):
        os._exit(_FAILED)


def become(entry: pwd.struct_passwd, limits: Mapping[str, Rlimit] | None = None) -> None:
    """Turn this process into one of a user, with these limits, for good."""
    os.setgroups(os.getgrouplist(entry.pw_name, entry.pw_gid))
    os.setgid(entry.pw_gid)
    set_own_limits(limits or {})
    os.setuid(entry.pw_uid)
