# SPDX-License-Identifier: BSD-2-Clause
"""Say why the process that looks has less than a fresh session: connections keep their limits."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence

from ..core.cause import Cause
from ..core.finding import FAIL, PASS, Finding, judge_limits
from ..host.look import Look, Process, format_time, read_parent, read_process, read_start_time
from ..host.users import read_user
from .connection_causes import Connection, find_connection_causes
from .host_read import SessionsRead
from .rules import find_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.values import Rlimit
    from .policy import SessionRule

_WAYS = {
    "sshd": "sshd",
    "sshd-session": "sshd",
    **{name: name for name in ("sudo", "su", "cron", "crond")},
}
"""By the name of the process that opened the session, the PAM service."""


def explain_connection(
    rules: tuple[SessionRule, ...],
    findings: Sequence[Finding],
    own: Mapping[str, Rlimit],
    look: Look,
) -> list[Cause]:
    """Return why this process has less than a fresh session of its user, which has enough.

    :param findings: Those of fresh sessions among others.
    """
    opener = _find_opener()
    user = read_user(pwd.getpwuid(os.getuid()).pw_name)
    if opener is None or user is None:
        return []
    place = f"session:{user.name}@{_WAYS[opener.comm]}"
    passed = {
        (finding.requirement.item, finding.requirement.bound)
        for finding in findings
        if (finding.requirement.place, finding.status) == (place, PASS)
    }
    short = [
        finding
        for finding in judge_limits("connection", find_limits(rules, user), own, "")
        if finding.status == FAIL
        and (finding.requirement.item, finding.requirement.bound) in passed
    ]
    started = read_start_time(opener)
    newer = [
        path for path in look.at(SessionsRead).limits_files if os.stat(path).st_mtime > started
    ]
    facts = Connection(opener.comm, opener.pid, format_time(started), tuple(newer))
    return find_connection_causes(short, facts)


def _find_opener() -> Process | None:
    """Return the process above this one that opened its session."""
    pid = os.getppid()
    while pid > 1:
        try:
            process = read_process(pid)
            pid = read_parent(pid)
        except (OSError, ValueError):
            return None
        if process.comm in _WAYS:
            return process
    return None
