# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon that is older than its unit's files may pass something else on after a boot."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Outlook
from mlhost_limits.core.finding import PASS, UNKNOWN, Observation, judge
from mlhost_limits.host.look import Look
from mlhost_limits.sessions import base_read
from mlhost_limits.sessions.diagnose import _doubt_restart
from mlhost_limits.sessions.host_read import SessionsRead
from mlhost_limits.sessions.measure import SessionResult

from .test_causes import CONF, SOFT, START, gather

DROP_IN = "/etc/systemd/system/ssh.service.d/low.conf"
BOTH = "alice - nofile 70000\n"


@pytest.mark.parametrize(
    ("lines", "resets", "newer", "later"),
    [
        ("", False, DROP_IN, UNKNOWN),
        ("alice soft nofile 70000\n", False, DROP_IN, UNKNOWN),
        (BOTH, False, DROP_IN, PASS),
        ("", True, DROP_IN, PASS),
        ("", False, "", PASS),
    ],
)
def test_what_a_boot_gives_is_unknown_where_the_daemon_decides(
    lines: str, resets: bool, newer: str, later: str
) -> None:
    facts = gather({CONF: lines})._replace(start=START._replace(resets=resets))
    read = SessionsRead()
    read._newer["sshd"] = newer
    finding = judge(SOFT, Observation(70000, "here"))._replace(outlook=Outlook(PASS, "", PASS))
    result = SessionResult("su", "alice", None, "")
    found = _doubt_restart(finding, facts, result, Look().seen_by(SessionsRead, read))
    assert (found.status, found.outlook.after_boot) == (PASS, later)
    assert [cause.at.path for cause in found.causes if cause.at] == [DROP_IN] * (later == UNKNOWN)


def test_the_file_that_is_newer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"/etc/systemd/system.conf": 50.0, DROP_IN: 50.0}
    monkeypatch.setattr(base_read, "find_login_daemon", lambda _service: 7)
    monkeypatch.setattr(base_read, "read_process", lambda _pid: None)
    monkeypatch.setattr(base_read, "read_start_time", lambda _process: 100.0)
    monkeypatch.setattr(base_read, "read_change", lambda path: times.get(path, 0.0))
    folder = DROP_IN.rpartition("/")[0]
    monkeypatch.setattr(base_read, "list_folder", lambda path: ["low.conf"] * (path == folder))
    assert base_read.find_newer_file("sshd") == ""
    times["/etc/systemd/system.conf"] = 150.0
    assert base_read.find_newer_file("sshd") == "/etc/systemd/system.conf"
    times[DROP_IN] = 150.0
    assert base_read.find_newer_file("sshd") == DROP_IN
    assert base_read.find_newer_file("login") == ""
