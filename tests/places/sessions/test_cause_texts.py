# SPDX-License-Identifier: GPL-3.0-or-later
"""A cause of a session says whose line counts, what it beats, and what a session starts with."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Cause, Remedy
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import RLIMITS, Declaration, Rlimit, User
from mlhost_limits.sessions.causes import find_session_causes
from mlhost_limits.sessions.doubts import doubt_daemon, doubt_sudo
from mlhost_limits.sessions.facts import SessionFacts, find_early_ending, find_ending
from mlhost_limits.sessions.model import FD_SETSIZE, Start, find_baseline, is_taken
from mlhost_limits.sessions.pam_limits import read_lines
from mlhost_limits.sessions.reach import EarlierCall, Hindrance
from mlhost_limits.sessions.unread import find_unread

CONF, D = "/etc/security/limits.conf", "/etc/security/limits.d"
DEBIAN_12 = Dialect(1023, wildcard_root=False)
ALICE = User("alice", 1000, 1000, frozenset({"alice", "ml"}), frozenset({1000}))
PID_1 = {
    **dict.fromkeys(RLIMITS, Rlimit(2**40, 2**40)),
    "nofile": Rlimit(4096, 524288),
    "memlock": Rlimit(2**23, 2**23),
}
START = Start(PID_1, PID_1, 1048576, resets=True)


def gather(text: str, others: dict[str, str] | None = None) -> SessionFacts:
    files = {CONF: text}
    unread = tuple(find_unread(files, others or {}, DEBIAN_12))
    lines = tuple(read_lines(files, DEBIAN_12))
    return SessionFacts(ALICE, DEBIAN_12, lines, START, (), unread)


def need(item: str, bound: str, least: int) -> Requirement:
    unit = "bytes" if item == "memlock" else ""
    return Requirement("session:alice@sshd", item, bound, least, unit=unit)


SOFT, HARD = need("nofile", "soft", 65536), need("nofile", "hard", 600000)


@pytest.mark.parametrize(
    ("lines", "wanted", "text"),
    [
        ("", SOFT, "no limits file states nofile: a session starts with 1024:524288"),
        (
            "alice soft nofile 9",
            HARD,
            "no limits file states nofile hard: a session starts with 1024:524288",
        ),
        (
            "",
            need("memlock", "hard", 2**30),
            "no limits file states memlock: a session starts with 8MiB",
        ),
        (
            "* soft nofile 70000\n@ml hard nofile 9\n* hard nofile 70000",
            SOFT,
            f'{CONF}:2 "@ml hard nofile 9" takes the soft limit of {CONF}:1 "* soft nofile 70000"'
            f' down with it: it (group) beats {CONF}:3 "* hard nofile 70000" (wildcard)',
        ),
        (
            "* soft nofile 70000\n* hard nofile 70000\n* hard nofile 9",
            SOFT,
            f'{CONF}:3 "* hard nofile 9" takes the soft limit of {CONF}:1 "* soft nofile 70000"'
            f' down with it: it (wildcard) is read after {CONF}:2 "* hard nofile 70000" (wildcard)',
        ),
        (
            "* soft nofile 70000\n* soft nofile 9",
            SOFT,
            f'{CONF}:2 "* soft nofile 9" (wildcard) is read after and beats'
            f' {CONF}:1 "* soft nofile 70000" (wildcard)',
        ),
        ("alice soft nofile 9", SOFT, f'{CONF}:1 "alice soft nofile 9" states too little'),
        (
            "alice hard nofile 70000",
            need("nofile", "hard", 0)._replace(minimum=None, maximum=9),
            f'{CONF}:1 "alice hard nofile 70000" states too much',
        ),
    ],
)
def test_what_a_cause_says(lines: str, wanted: Requirement, text: str) -> None:
    assert find_session_causes(wanted, gather(lines))[0].text == text


def test_a_line_about_another_limit_or_bound_is_not_what_was_meant() -> None:
    others = {f"{D}/95-site": "alice hard nofile 70000\nalice soft nproc 70000\n"}
    (cause,) = find_session_causes(SOFT, gather("", others))
    assert cause.code == "pam-not-stated"


def test_a_file_that_is_given_its_name_brings_all_its_lines() -> None:
    others = {
        f"{D}/94-site": "alice soft nproc 5\n",
        f"{D}/95-site": "alice hard nofile 70000\nalice soft nofile 70000\n",
    }
    (cause,) = find_session_causes(SOFT, gather("", others))
    assert (cause.code, cause.at and cause.at.place) == ("pam-file-not-read", f"{D}/95-site:2")
    assert cause.remedy.lines == [f"mv -nT {D}/95-site {D}/95-site.conf"]


def test_one_line_states_both_bounds_where_neither_is_stated() -> None:
    facts = gather("")._replace(asked=Limit(600000, 600000))
    assert [one.remedy.text.split('"')[1] for one in find_session_causes(HARD, facts)] == [
        "alice - nofile 600000"
    ]
    facts = gather("alice soft nofile 600000")._replace(asked=Limit(600000, 600000))
    assert [one.remedy.text.split('"')[1] for one in find_session_causes(HARD, facts)] == [
        "alice hard nofile 600000"
    ]


@pytest.mark.parametrize(
    ("may_raise", "hard", "taken"), [(False, 8, True), (False, 9, False), (True, 9, True)]
)
def test_what_is_there_already_needs_no_capability(may_raise: bool, hard: int, taken: bool) -> None:
    start = START._replace(inherited={"core": Rlimit(4, 8)}, may_raise=may_raise)
    assert is_taken("core", Rlimit(4, hard), start) is taken


def test_a_session_starts_with_no_more_than_select_can_hold() -> None:
    assert find_baseline("nofile", START) == Rlimit(FD_SETSIZE, 524288)
    assert FD_SETSIZE == 1024


def test_what_is_refused_ends_a_session_only_where_it_is_read() -> None:
    dialect = Dialect(1023)
    lines = tuple(read_lines({CONF: "alice - nofile 2000000\n"}, dialect))
    facts = gather("")._replace(dialect=dialect, lines=lines)
    assert find_ending(facts) == "nofile"
    cause = Cause("x", "", Remedy(""))
    unread, read = Hindrance(cause), Hindrance(cause, lines)
    assert find_ending(facts._replace(hindrances=(unread, read))) is None
    assert find_ending(facts._replace(hindrances=(read, unread))) == "nofile"


def test_what_a_doubt_says() -> None:
    at = Declaration("/etc/sudoers", 3, "Defaults x", "")
    assert doubt_sudo(at, "nofile").cause.text.endswith(" sets nofile after PAM did")
    assert doubt_sudo(at, "").cause.text.endswith(" keeps sudo from its own session of PAM")
    cause = doubt_daemon("sshd is old", "/etc/x.conf")
    assert cause.text == "sshd is old, and no limits file states both"
    assert (cause.at and cause.at.place) == "/etc/x.conf"
    assert doubt_daemon("sshd is old", "").at is None


@pytest.mark.parametrize(
    ("dialect", "is_fatal", "line"),
    [(Dialect(1023), True, 1), (Dialect(1023), False, 0), (DEBIAN_12, True, 0)],
)
def test_the_line_of_another_file_that_ends_the_session(
    dialect: Dialect, is_fatal: bool, line: int
) -> None:
    lines = tuple(read_lines({CONF: "alice - nofile 2000000\n"}, dialect))
    call = EarlierCall(lines, is_fatal)
    facts = gather("")._replace(dialect=dialect, earlier=(call,))
    found = find_early_ending(facts)
    assert (found.line if found else 0) == line
