# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever stands for everybody cannot keep what root gives from being seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from mlhost_limits.core.finding import Finding
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import RLIMITS, UNLIMITED, Declaration, Rlimit, User
from mlhost_limits.host.look import Look
from mlhost_limits.sessions import check as check_sessions
from mlhost_limits.sessions.measure import SessionResult
from mlhost_limits.sessions.policy import SessionRule
from mlhost_limits.sessions.shell_clock_measure import NOT_ASKED
from mlhost_limits.sessions.shell_limits_measure import ShellResult

USERS = {"root": 0, "alice": 1000, "bob": 1001, "carol": 1002}
EVERYONE = SessionRule(("*",), {"nofile": Limit(100)})
ALICE = SessionRule(("alice",), {"nofile": Limit(100)})


def limits(soft: int) -> dict[str, Rlimit]:
    free = dict.fromkeys(RLIMITS, Rlimit(UNLIMITED, UNLIMITED))
    return {**free, "nofile": Rlimit(soft, UNLIMITED)}


class Host:
    """Users of a host: what PAM gives each, and what their shells say."""

    def __init__(self) -> None:
        self.pam: dict[str, int | None] = dict.fromkeys(USERS, 200)
        self.shells: dict[str, int | None] = {}
        self.given: dict[str, int] = {}
        self.opened: list[str] = []
        self.is_in_time = True

    def open(
        self, wanted: Sequence[tuple[str, str]], *_rest: object, **_options: object
    ) -> list[SessionResult]:
        self.opened += [user for _way, user in wanted]
        return [
            SessionResult(way, user, None if soft is None else limits(soft), "PAM", "it is closed")
            for way, user in wanted
            for soft in [self.pam[user]]
        ]

    def ask(
        self, sessions: Sequence[SessionResult], _items: object, _keys: object, _clock: object
    ) -> dict[tuple[str, str], ShellResult]:
        return {
            (one.service, one.user): self.tell(one.user)
            for one in sessions
            if one.user in {**self.shells, **self.given}
        }

    def tell(self, user: str) -> ShellResult:
        soft, given = self.shells.get(user), self.given.get(user)
        first = None if given is None else ShellResult(limits(given), "", (), "nobody")
        return ShellResult(
            None if soft is None else limits(soft),
            "it sleeps" if self.is_in_time else NOT_ASKED,
            (),
            "shell",
            given=first,
        )

    def check(
        self, rule: SessionRule, users: Sequence[str] | None = None
    ) -> list[tuple[object, ...]]:
        found = check_sessions.check_sessions((rule,), users, ["su"], "quiet", Look())
        return list(map(describe, found))


def describe(one: Finding) -> tuple[object, ...]:
    wanted = one.requirement
    return wanted.place, wanted.item, one.status, one.observation.value, one.owner


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(check_sessions, "measure_sessions", made.open)
    monkeypatch.setattr(check_sessions, "measure_shells", made.ask)
    monkeypatch.setattr(check_sessions, "find_connecting_user", lambda: None)
    monkeypatch.setattr(check_sessions, "pick_users", lambda count: list(USERS)[1 : count + 1])
    monkeypatch.setattr(check_sessions, "is_root", lambda name: USERS[name] == 0)
    monkeypatch.setattr(
        "mlhost_limits.sessions.host_read.read_user",
        lambda name: User(name, USERS[name], USERS[name], frozenset(), frozenset()),
    )
    return made


A = "session:alice@su"


@pytest.mark.parametrize(
    ("pam", "shell", "found"),
    [
        (200, 50, [(A, "nofile", "fail", 50, "alice")]),
        (200, 300, [(A, "nofile", "pass", 200, "")]),
        (50, 300, [(A, "nofile", "fail", 50, "")]),
        (50, 20, [(A, "nofile", "fail", 50, "")]),
        (
            50,
            None,
            [(A, "nofile", "fail", 50, ""), (A, "shell", "unknown", None, "alice")],
        ),
        (
            200,
            None,
            [(A, "nofile", "pass", 200, ""), (A, "shell", "unknown", None, "alice")],
        ),
    ],
)
def test_a_sample_s_shell_speaks_for_the_sample_alone(
    host: Host, pam: int, shell: int | None, found: list[tuple[object, ...]]
) -> None:
    host.pam["alice"], host.shells["alice"] = pam, shell
    assert host.check(EVERYONE) == found


@pytest.mark.parametrize(("rule", "users"), [(ALICE, None), (EVERYONE, ["alice"])])
def test_of_whom_is_asked_a_silent_shell_fails(
    host: Host, rule: SessionRule, users: list[str] | None
) -> None:
    host.shells["alice"] = None
    assert host.check(rule, users) == [
        (A, "nofile", "pass", 200, ""),
        (A, "shell", "fail", "none", "alice"),
    ]


def test_of_whom_others_left_no_time_to_ask_nothing_is_known(host: Host) -> None:
    """That is not a failure of theirs, and no pass."""
    host.shells["alice"], host.is_in_time = None, False
    assert host.check(ALICE) == [(A, "nofile", "unknown", None, "")]
    host.pam["alice"] = 50
    assert host.check(ALICE) == [(A, "nofile", "fail", 50, "")]


def test_start_files_of_root_are_root_s(host: Host) -> None:
    host.shells["alice"], host.given["alice"] = 500, 50
    assert host.check(EVERYONE) == [(A, "nofile", "fail", 50, "")]
    host.shells["root"] = 50
    assert host.check(EVERYONE, ["root"]) == []
    root = SessionRule(("root",), {"nofile": Limit(100)})
    assert host.check(root) == [("session:root@su", "nofile", "fail", 50, "")]


def test_who_lets_no_session_open_is_not_alone_in_standing_for_all(host: Host) -> None:
    host.pam.update(alice=None, bob=None, carol=50)
    found = host.check(EVERYONE)
    assert found == [
        (A, "nofile", "unknown", None, ""),
        ("session:carol@su", "nofile", "fail", 50, ""),
    ]
    host.opened.clear()
    host.pam["carol"] = None
    assert [one[2] for one in host.check(EVERYONE)] == ["unknown"]
    assert host.opened == ["alice", "bob", "carol"]
    host.opened.clear()
    assert [one[2] for one in host.check(ALICE)] == ["unknown"]
    assert host.opened == ["alice"]


def test_a_key_s_command_keeps_a_session_of_whom_is_asked_from_passing(host: Host) -> None:
    at = Declaration("/home/alice/.ssh/authorized_keys", 3, 'command="ulimit -n 9" ssh-rsa A', "")
    host.tell = lambda _user: ShellResult(  # type: ignore[method-assign,assignment]
        limits(200), "", (), "session", forced=(at,)
    )
    host.shells["alice"] = 200
    assert host.check(EVERYONE) == [(A, "nofile", "pass", 200, "")]
    [found] = check_sessions.check_sessions((ALICE,), None, ["su"], "quiet", Look())
    assert found.status == "unknown"
    assert "authorized_keys:3" in found.observation.reason
    assert "takes the place of the shell" in found.observation.reason
