# SPDX-License-Identifier: GPL-3.0-or-later
"""A limit with which no login would open is named with its key path, and no other is."""

from __future__ import annotations

import pytest
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, User
from mlhost_limits.sessions.limits_conf import parse_limits_conf
from mlhost_limits.sessions.lockouts import (
    FLOORS,
    Logins,
    find_login_lockouts,
    find_small_limits,
    find_small_lines,
)
from mlhost_limits.sessions.policy import SessionRule

MIB = 2**20
ALICE = User("alice", 1000, 1000, frozenset({"alice", "ml"}), frozenset({1000}))
ROOT = User("root", 0, 0, frozenset({"root"}), frozenset({0}))
NOFILE = "sshd ends a login that has fewer than 14; 64 or more is accepted"


def rule(users: str, **limits: Limit) -> SessionRule:
    return SessionRule(tuple(users.split()), limits)


@pytest.mark.parametrize("item", FLOORS)
def test_the_floor_itself_is_accepted_and_one_less_is_not(item: str) -> None:
    least = FLOORS[item].least
    for limit in (Limit(least), Limit(hard=least), Limit(UNLIMITED, UNLIMITED), Limit(max=0)):
        assert list(find_small_limits([rule("*", **{item: limit})])) == []
    for limit in (Limit(least - 1, UNLIMITED), Limit(hard=least - 1)):
        assert len(list(find_small_limits([rule("*", **{item: limit})]))) == 1


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"nofile": Limit(0, 4096)}, f"nofile: 0 is too little to log in: {NOFILE}"),
        ({"nofile": Limit(4, 8)}, f"nofile: 4 is too little to log in: {NOFILE}"),
        (
            {"stack": Limit(65536, UNLIMITED)},
            "stack: 64KiB is too little to log in: a login shell dies with less than 128KiB;"
            " 1MiB or more is accepted",
        ),
        (
            {"cpu": Limit(0, 0)},
            "cpu: 0s is too little to log in: the kernel takes 0 for one second, and then kills"
            " the login; 60s or more is accepted",
        ),
        (
            {"nonewprivs": Limit(1, 1)},
            "nonewprivs: 1 for '*' takes sudo and su from everyone but root; users and groups by"
            " name are accepted",
        ),
    ],
)
def test_the_sentence(limits: dict[str, Limit], problem: str) -> None:
    rules = [rule("alice", core=Limit(0, 0)), rule("*", **limits)]
    assert list(find_small_limits(rules)) == [f"sessions[1].limits.{problem}"]


@pytest.mark.parametrize("item", ["core", "memlock", "sigpending", "msgqueue", "rss", "locks"])
def test_what_logins_do_without_may_be_nothing(item: str) -> None:
    assert list(find_small_limits([rule("*", **{item: Limit(0, 0)})])) == []


def test_privileges_may_be_taken_from_some() -> None:
    rules = [rule("@ml", nonewprivs=Limit(1, 1)), rule("*", nonewprivs=Limit(0, 0))]
    assert list(find_small_limits(rules)) == []


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("bob - nofile 1e6", "1"),
        ("@ml hard nofile 0x10000", "0"),
        ("*  SOFT  NOFILE  1,000 # said", "1"),
        ("* - stack 64k", "64KiB"),
        ("* - as 0", "0B"),
        ("* - nofile 64", ""),
        ("* - nofile unlimited", ""),
        ("* - nofile x", ""),
        ("* both nofile 1", ""),
        ("%ml - nofile 1", ""),
        ("bob - maxlogins 0", ""),
        ("* - core 0", ""),
        ("bob -", ""),
    ],
)
def test_a_line_is_named_for_what_pam_reads(line: str, means: str) -> None:
    said = list(find_small_lines(parse_limits_conf(f"# theirs\n{line}", "/x.conf")))
    item = line.split()[2].lower() if means else ""
    text = line.partition(" # ")[0] if "#" not in line else line
    expected = [f'/x.conf:2 "{text}" means {means} to PAM: {FLOORS[item].breaks}'] if means else []
    assert said == expected


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([rule("*", nproc=Limit(71, 71))], []),
        (
            [rule("root", core=Limit(0)), rule("@ml", nproc=Limit(40, 70))],
            [
                "sessions[1].limits.nproc: 40 is too little for alice, who runs 40 tasks now;"
                " 72 or more is accepted"
            ],
        ),
        ([rule("*", nproc=Limit(40, 40)), rule("alice", nproc=Limit(72))], []),
        ([rule("*", nproc=Limit(3, 3))], []),  # Too little on any host: said there.
        ([rule("bob", nproc=Limit(40, 40))], []),
        ([rule("*", nproc=Limit(max=40))], []),
    ],
    ids=["just enough", "a group", "a user beats everyone", "the floor", "another", "a maximum"],
)
def test_tasks_that_run_now_count(rules: list[SessionRule], said: list[str]) -> None:
    running = 39 if not said and rules[0].limits.get("nproc") == Limit(71, 71) else 40
    assert list(find_login_lockouts(rules, Logins({ALICE: running, ROOT: 4000}))) == said


def test_a_line_without_a_floor_hides_none_after_it() -> None:
    text = "* - core 0\nbob -\n* - nofile 1\n"
    (said,) = find_small_lines(parse_limits_conf(text, "/x.conf"))
    assert said.startswith("/x.conf:3 ")


def test_root_is_exempt_from_nproc() -> None:
    rules = [rule("root *", nproc=Limit(100, 100))]
    assert list(find_login_lockouts(rules, Logins({ROOT: 4000}))) == []


@pytest.mark.parametrize(
    ("limit", "wtmp", "told"),
    [
        (Limit(2 * MIB, 2 * MIB), MIB, False),
        (Limit(2 * MIB, 2 * MIB), MIB + 1, True),
        (Limit(2 * MIB, UNLIMITED), MIB + 1, True),
        (Limit(0, 0), MIB, False),  # Too little on any host: said there.
        (Limit(max=5), MIB, False),
        (Limit(UNLIMITED, UNLIMITED), MIB, False),
    ],
)
def test_a_login_of_root_must_be_recorded(limit: Limit, wtmp: int, told: bool) -> None:
    problem = (
        f"sessions[0].limits.fsize: 2MiB is less than /var/log/wtmp holds ({wtmp} bytes) and 1MiB"
        " more, so a login of root ends when it is recorded"
    )
    logins = Logins(wtmp=wtmp)
    assert list(find_login_lockouts([rule("root", fsize=limit)], logins)) == [problem] * told
    assert list(find_login_lockouts([rule("*", fsize=limit)], logins)) == []


@pytest.mark.parametrize(
    ("users", "admin", "told"),
    [
        ("alice", ALICE, True),
        ("@ml", ALICE, True),
        ("bob", ALICE, False),
        ("alice", None, False),
    ],
)
def test_who_manages_the_host_keeps_sudo(users: str, admin: User | None, told: bool) -> None:
    rules = [rule(users, nonewprivs=Limit(1, 1))]
    problem = (
        "sessions[0].limits.nonewprivs: 1 takes sudo and su from alice, through whom this host is"
        " managed"
    )
    assert list(find_login_lockouts(rules, Logins(connecting=admin))) == [problem] * told


def test_privileges_that_are_not_taken_are_no_problem() -> None:
    rules = [rule("alice", nonewprivs=Limit(0, 0))]
    assert list(find_login_lockouts(rules, Logins(connecting=ALICE))) == []


def test_a_folder_without_a_shell_holds_no_session() -> None:
    rules = [rule("alice", chroot=Limit(text="/srv/a")), rule("bob", chroot=Limit(text="/srv/b"))]
    assert list(find_login_lockouts(rules, Logins(bare=["/srv/b"]))) == [
        "sessions[1].limits.chroot: /srv/b is not a directory with a /bin/sh in it, so every login"
        " would end"
    ]
