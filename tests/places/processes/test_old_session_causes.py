# SPDX-License-Identifier: GPL-3.0-or-later
"""What outlives a login is told apart: the session, a terminal server, a user's manager."""

from __future__ import annotations

from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import Declaration, Rlimit
from mlhost_limits.processes.causes import Moment
from mlhost_limits.processes.old_session_causes import (
    Login,
    Server,
    blame_user_manager,
    find_login_cause,
    raise_login,
)

WANTED, FRESH = Limit(65536, 131072), Rlimit(65536, 1048576)
LOW = {"nofile": Rlimit(1024, 4096)}
CONF = "/etc/security/limits.conf"
LINE = Declaration(CONF, 3, "alice soft nofile 65536", 65536)
T1, T2 = Moment(100, "10:00"), Moment(200, "11:00")
LOGIN = Login(7, "session 5 of alice (sshd)", "log in again", LOW, T1, T2, CONF)
GETS = "a session opened now gets 65536:1048576"


def test_a_session_that_is_older_than_the_line_that_counts() -> None:
    cause = find_login_cause("nofile", WANTED, LOGIN._replace(line=LINE), FRESH)
    assert (cause.code, cause.at) == ("session-older-than-files", LINE)
    line = f'{CONF}:3 "alice soft nofile 65536"'
    told = f"session 5 of alice (sshd) was opened 10:00 and keeps 1024:4096; {line}"
    assert cause.text == f"{told} was changed 11:00, and {GETS}"
    assert cause.remedy.lines == ["prlimit --pid 7 --nofile=65536:131072"]
    assert "end session 5 of alice (sshd), and log in again" in cause.remedy.text


def test_a_session_that_is_older_than_something_else() -> None:
    cause = find_login_cause("nofile", WANTED, LOGIN, FRESH)
    assert f"; {CONF} was changed 11:00" in cause.text


def test_a_session_in_which_something_was_set() -> None:
    cause = find_login_cause("nofile", WANTED, LOGIN._replace(opened=T2, changed=T1), FRESH)
    assert cause.code == "process-changed-in-session"
    told = "something set process 7 to 1024:4096 in session 5 of alice (sshd)"
    assert cause.text == f"{told}; {GETS}"


def test_a_session_of_the_second_of_the_change_may_be_younger() -> None:
    cause = find_login_cause("nofile", WANTED, LOGIN._replace(opened=T2), FRESH)
    assert cause.code == "process-changed-in-session"


def test_tmux_is_older_than_the_login_that_uses_it() -> None:
    login = LOGIN._replace(server=Server(6, "tmux", LOW))
    cause = find_login_cause("nofile", WANTED, login, FRESH)
    assert cause.code == "terminal-server-older"
    told = "tmux (pid 6) was started in session 5 of alice (sshd) and keeps 1024:4096"
    assert cause.text == f"{told}; {GETS}"
    assert cause.remedy.lines == [
        "prlimit --pid 6 --nofile=65536:131072",
        "prlimit --pid 7 --nofile=65536:131072",
    ]


def test_what_is_enough_already_is_left_alone() -> None:
    good = {"nofile": Rlimit(65536, 131072)}
    login = LOGIN._replace(server=Server(6, "tmux", good))
    assert raise_login("nofile", WANTED, login) == (
        ("prlimit", "--pid", "7", "--nofile=65536:131072"),
    )
    own = LOGIN._replace(server=Server(7, "tmux", LOW))
    assert len(raise_login("nofile", WANTED, own)) == 1


def test_a_user_s_manager_is_older() -> None:
    restart = (("systemctl", "restart", "user@1000.service"),)
    cause = blame_user_manager("user@1000.service", ("1:2", "3:4"), "10:00", restart)
    assert cause.text == (
        "user@1000.service has run since 10:00 and gives its services 1:2; started now, it would"
        " give them 3:4"
    )
    assert cause.remedy.commands == restart
