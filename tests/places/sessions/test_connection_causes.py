# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection that has less than a fresh session is told why."""

from __future__ import annotations

from mlhost_limits.core.finding import judge_limits
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import RLIMITS, Rlimit
from mlhost_limits.sessions.connection_causes import CODES, Connection, find_connection_causes

FILE = "/etc/security/limits.d/90-mlhost.conf"
SHORT = judge_limits(
    "connection", {"nofile": Limit(65536)}, {name: Rlimit(1024, 4096) for name in RLIMITS}, ""
)
OPENED = Connection("sshd", 812, "2026-11-21T10:00:00")


def test_a_connection_older_than_a_file() -> None:
    (cause,) = find_connection_causes(SHORT, OPENED._replace(newer=(FILE,)))
    assert (cause.code, cause.at and cause.at.path) == ("connection-kept-open", FILE)
    assert cause.text == (
        "this connection (sshd, pid 812, since 2026-11-21T10:00:00) has nofile soft 1024:"
        f" it is older than the last change of {FILE}"
    )


def test_a_connection_that_something_lowered() -> None:
    (cause,) = find_connection_causes(SHORT, OPENED)
    assert cause.code == "connection-inherits"
    assert set(CODES) == {"connection-kept-open", "connection-inherits"}


def test_a_connection_that_has_enough() -> None:
    assert find_connection_causes([], OPENED) == []
