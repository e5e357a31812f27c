# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon that is older than its unit's files may pass something else on after a boot."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Outlook
from mlhost_limits.core.finding import PASS, UNKNOWN, Observation, judge
from mlhost_limits.core.values import RLIMITS, Declaration, Rlimit
from mlhost_limits.host.look import Look, Process
from mlhost_limits.host.manager_read import Shown
from mlhost_limits.sessions import base_read, host_read
from mlhost_limits.sessions.diagnose import _doubt_restart
from mlhost_limits.sessions.host_read import SessionsRead
from mlhost_limits.sessions.measure import SessionResult
from mlhost_limits.sessions.reach import find_bypass

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
        ("no PAM", True, DROP_IN, UNKNOWN),
        ("", False, "", PASS),
    ],
)
def test_what_a_boot_gives_is_unknown_where_the_daemon_decides(
    lines: str, resets: bool, newer: str, later: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = gather({CONF: lines})._replace(start=START._replace(resets=resets))
    bypass = find_bypass(Declaration("/etc/ssh/sshd_config", 1, "UsePAM no", "no"), "ssh.service")
    if bypass and lines == "no PAM":
        facts = facts._replace(hindrances=(bypass,))
    read = SessionsRead()
    read._newer["sshd"] = newer
    monkeypatch.setattr(host_read, "find_fleeting_file", lambda _daemon: "")
    monkeypatch.setattr(host_read, "find_change_by_hand", lambda _daemon, _item: "")
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


RUN = "/run/systemd/system/ssh.service.d/low.conf"


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        (RUN, "[Service]\nLimitNOFILE=70000\n", RUN),
        (RUN, "[Service]\nTasksMax=7\n", ""),
        (DROP_IN, "[Service]\nLimitNOFILE=70000\n", ""),
    ],
)
def test_a_file_that_a_boot_takes_away_is_found(
    path: str, text: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, name = path.rpartition("/")[::2]
    monkeypatch.setattr(base_read, "list_folder", lambda other: [name] * (other == folder))
    monkeypatch.setattr(base_read, "read_text", {path: text}.get)
    assert base_read.find_fleeting_file("sshd") == found
    assert base_read.find_fleeting_file("login") == ""


@pytest.mark.parametrize(
    ("has", "given", "pid", "found"),
    [
        (Rlimit(70000, 524288), Rlimit(1024, 524288), 7, True),
        (Rlimit(1024, 524288), Rlimit(1024, 524288), 7, False),
        (Rlimit(4096, 4096), Rlimit(2**64 - 1, 2**64 - 1), 7, False),
        (Rlimit(70000, 524288), Rlimit(1024, 524288), 8, False),
    ],
)
def test_a_daemon_that_was_changed_by_hand_is_found(
    has: Rlimit, given: Rlimit, pid: int, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Shown({**dict.fromkeys(RLIMITS, has), "nofile": given}, pid, False, 0.0)
    home = Process(7, "sshd", 0, "0::/system.slice/ssh.service", 1)
    for name, value in {
        "find_login_daemon": 7, "read_process": home, "read_comm": "sshd",
        "read_limits": dict.fromkeys(RLIMITS, has),
    }.items():  # fmt: skip
        monkeypatch.setattr(base_read, name, lambda *_args, value=value: value)
    monkeypatch.setattr("mlhost_limits.host.manager_read.show_unit", lambda _unit: shown)
    pair = f"{has.soft}:{has.hard}"
    told = f"sshd (pid 7) has nofile {pair}, and ssh.service gives 1024:524288"
    assert base_read.find_change_by_hand("sshd", "nofile") == told * found
    assert base_read.find_change_by_hand("sshd", "memlock") == ""
    assert base_read.find_change_by_hand("sshd", "maxlogins") == ""
