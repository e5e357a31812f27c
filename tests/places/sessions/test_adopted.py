# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of limits.conf become rules of a policy that PAM reads in the same way, or are named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mlhost_limits.adopt import plain
from mlhost_limits.core import adopted as core
from mlhost_limits.core.policy import Policy
from mlhost_limits.core.values import RLIMITS, User
from mlhost_limits.schema import load_policy
from mlhost_limits.sessions import adopt as sessions
from mlhost_limits.sessions.adopt import Host, adopt_sessions
from mlhost_limits.sessions.limits_conf import format_limits
from mlhost_limits.sessions.pam_limits import (
    LIMITS_CONF,
    LIMITS_D,
    Dialect,
    read_lines,
    resolve_limits,
    resolve_settings,
)
from mlhost_limits.sessions.rules import find_limits

DEBIAN = Dialect(1023, wildcard_root=False, unknown=("rttime",))
RED_HAT = Dialect(1023)
OLD = Dialect(1023, reads_nr_open=False)
PEERS = f"{LIMITS_D}/90-peers.conf"
USERS = (
    User("root", 0, 0, frozenset({"root"}), frozenset({0})),
    User("alice", 1001, 2001, frozenset({"ml"}), frozenset({2001})),
    User("bob", 1002, 2002, frozenset({"hpc", "ml"}), frozenset({2001, 2002})),
    User("carl", 5000, 5000),
)


def adopt(
    files: dict[str, str], dialect: Dialect = DEBIAN, nr_open: int | None = 1048576
) -> tuple[Any, list[str]]:
    """Return the section as plain data, and why each line is left out."""
    read = {path: text for path, text in files.items() if path.endswith(".conf")}
    others = {path: text for path, text in files.items() if path not in read}
    adopted = adopt_sessions(read, others, Host(dialect, nr_open))
    left = [f"{one.at.path.rpartition('/')[2]}:{one.at.line} {one.reason}" for one in adopted.left]
    return plain(adopted.section), left


def limits(text: str, **options: Any) -> tuple[Any, list[str]]:
    return adopt({LIMITS_CONF: text}, **options)


def test_a_loop_over_pam_limits_is_one_rule() -> None:
    text = "".join(
        f"{domain} {kind} {item} {value}\n"
        for domain in ("root", "*")
        for item, values in (("nofile", (65536, 1048576)), ("memlock", ("unlimited",) * 2))
        for kind, value in zip(("soft", "hard"), values, strict=True)
    )
    adopted = adopt_sessions({PEERS: text}, {}, Host(DEBIAN))
    assert plain(adopted.section) == {
        "sessions": [
            {
                "users": ["root", "*"],
                "limits": {"nofile": {"soft": 65536, "hard": 1048576}, "memlock": "unlimited"},
            }
        ]
    }
    section: Any = adopted.section
    (rule,) = section["sessions"]
    assert [one.line for one in rule["limits"]["memlock"].at] == [3, 4, 7, 8]
    assert not adopted.left


@pytest.mark.parametrize(
    ("line", "stated"),
    [
        ("alice - memlock 64", {"memlock": "64KiB"}),
        ("alice hard core 0", {"core": {"hard": "0B"}}),
        ("alice - cpu 10", {"cpu": "600s"}),
        ("alice - nice -5", {"nice": -5}),
        ("alice - priority 4", {"priority": 4}),
        ("alice - maxlogins 3", {"maxlogins": 3}),
        ("alice - maxsyslogins -1", {"maxsyslogins": "unlimited"}),
        ("alice - nonewprivs 1", {"nonewprivs": 1}),
        ("alice - chroot /srv", {"chroot": "/srv"}),
        ("alice - nofile unlimited", {"nofile": 1048576}),
        ("alice SOFT NOFILE 65536", {"nofile": {"soft": 65536}}),
        ("alice - nofile 65536k", {"nofile": 65536}),
    ],
)
def test_a_value_of_limits_conf_is_one_of_the_policy(line: str, stated: object) -> None:
    assert limits(line) == ({"sessions": [{"users": ["alice"], "limits": stated}]}, [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("bob -", "cancels every limit of its users, which a policy cannot say"),
        ("* -", "has no effect: pam_limits skips it"),
        ("bob both chroot /srv", "has no effect: pam_limits skips it"),
        ("bob - rttime 5", "has no effect: this pam_limits knows no rttime"),
        ("bob - colour 5", "has no effect: this pam_limits knows no colour"),
        (
            "bob both nofile 5",
            "has no effect: it cannot be understood as 'domain soft|hard|- item value'",
        ),
        (
            "1002 - nofile 5",
            "has no effect: a number is a name there; one with a colon before it is an id",
        ),
        ("bob - priority abc", "has no effect: pam_limits cannot read the value"),
        (
            "%ml - maxlogins 3",
            "'%ml' is not a domain; accepted are a user, '*', '@group', and uid or gid ranges as in"
            " limits.conf(5)",
        ),
        ("bob hard nofile 2000000", "is above fs.nr_open, 1048576, so no process can have it"),
        ("bob - nproc -5", "18446744073709551611 is not a limit: the largest number is 2**63 - 1"),
        (
            "bob hard nofile 0x10000",
            "0 is too little to log in: sshd ends a login that has fewer than 14; 64 or more is"
            " accepted",
        ),
        (
            "* - nonewprivs 1",
            "1 for '*' takes sudo and su from everyone but root; users and groups by name are"
            " accepted",
        ),
    ],
)
def test_what_a_policy_cannot_hold_is_named_with_the_reason(line: str, reason: str) -> None:
    assert limits(line) == ({}, [f"limits.conf:1 {reason}"])


@pytest.mark.parametrize(
    ("dialect", "reason"),
    [
        (DEBIAN, "means fs.nr_open, and its value is not known here"),
        (OLD, "is refused by PAM"),
    ],
)
def test_an_unlimited_nofile_is_no_number(dialect: Dialect, reason: str) -> None:
    text = "bob hard nofile infinity"
    assert limits(text, dialect=dialect, nr_open=None) == ({}, [f"limits.conf:1 {reason}"])


def test_more_lines_than_a_policy_holds_are_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_MOST", 2)
    lines = ["alice soft nofile 99", "bob soft nofile 99", "alice hard nofile 99"]
    assert limits("\n".join(lines[:2]))[1] == []
    monkeypatch.setattr(sessions, "parse_value", None)  # Nobody may ask for a value.
    told = "sessions: the site's files have 3 lines about it, more than the 2 that adopt writes"
    with pytest.raises(ValueError, match=f"^{told} into one policy$"):
        limits("\n".join(lines))


def test_a_file_that_pam_does_not_read_is_named() -> None:
    section, left = adopt({f"{LIMITS_D}/a.txt": "* - nofile 4096\n"})
    assert (section, left) == (
        {},
        ["a.txt:1 has no effect: pam_limits reads files named *.conf alone"],
    )


def test_a_line_that_a_later_one_replaces_is_named() -> None:
    section, left = adopt(
        {
            LIMITS_CONF: "* - nofile 4096\n* soft core 0\n",
            PEERS: "* soft nofile 8192\n* hard nofile 9000\n",
        }
    )
    assert left == [f"limits.conf:1 has no effect: {PEERS}:2 counts"]
    assert section == {
        "sessions": [
            {
                "users": ["*"],
                "limits": {"core": {"soft": "0B"}, "nofile": {"soft": 8192, "hard": 9000}},
            }
        ]
    }


def test_a_soft_limit_above_the_hard_one_is_what_pam_makes_of_it() -> None:
    section, left = limits("* soft memlock 500\n* hard memlock 400\n")
    assert section == {"sessions": [{"users": ["*"], "limits": {"memlock": "400KiB"}}]}
    assert left == [f"limits.conf:1 is above the hard one of {LIMITS_CONF}:2, so it is 400KiB"]


def test_a_half_that_pam_drops_is_told() -> None:
    reason = (
        f"its hard half does not reach the users that {LIMITS_CONF}:2 names; in a policy it does"
    )
    text = "bob hard nofile 4096\nbob soft nofile 1000\n@ml - nofile 5000\n"
    assert limits(text)[1] == [f"limits.conf:3 {reason}"]
    assert limits("@ml - nofile 5000\nbob soft nofile 1000\n")[1] == []
    assert limits("bob soft nofile 1000\n@ml - nofile 5000\n@ml hard nofile 6000\n")[1] == []


def test_root_is_told_where_everyone_means_root_too() -> None:
    reason = "means root too on this host; a policy names root beside '*'"
    assert limits("* - core 0\nalice - core 0\n", dialect=RED_HAT)[1] == [f"limits.conf:1 {reason}"]
    assert limits("alice - core 0\n", dialect=RED_HAT)[1] == []


def test_rules_keep_their_order_where_it_decides() -> None:
    """Two lines that name one user are equals; a user and a group never are."""
    section, _left = limits(
        "alice soft nofile 100\n1000: - nofile 200\n@ml - nofile 300\nalice hard nofile 400\n"
        "@ml soft core 1\nalice - priority 1\n* - priority 2\nalice - maxlogins 3\n"
        "@hpc - maxsyslogins 4\n* - maxlogins 5\nalice - core 1\n"
    )
    rules = section["sessions"]
    assert [(rule["users"], list(rule["limits"])) for rule in rules] == [
        (["alice"], ["nofile"]),
        (["1000:"], ["nofile"]),
        (["@ml"], ["nofile", "core"]),
        (["alice"], ["nofile", "priority", "maxlogins", "core"]),
        (["*"], ["priority"]),
        (["@hpc"], ["maxsyslogins"]),
        (["*"], ["maxlogins"]),
    ]


USER_DOMAINS = ("root", "alice", "bob", "1000:", "1001:1002", ":1001", "0:", ":0")
GROUP_DOMAINS = ("@ml", "@hpc", "@2000:", "@2001:2002", "@:2001", "@0:")
VALUES = {
    "nofile": ("128", "4096", "1048576", "unlimited"),
    "memlock": ("64", "100", "unlimited"),
    "nproc": ("100", "4096"),
    "priority": ("1", "2"),
    "maxlogins": ("3", "4"),
    "maxsyslogins": ("3", "5"),
    "nice": ("-5", "3"),
}
LINES = st.sampled_from(sorted(VALUES)).flatmap(
    lambda item: st.tuples(
        st.sampled_from(["*", *USER_DOMAINS, *GROUP_DOMAINS]),
        st.sampled_from(["soft", "hard", "-"]),
        st.just(item),
        st.sampled_from(VALUES[item]),
    ).map(" ".join)
)
FILES = st.fixed_dictionaries(
    {path: st.lists(LINES, max_size=8).map("\n".join) for path in (LIMITS_CONF, PEERS)}
)


def predict(files: dict[str, str], user: User, dialect: Dialect) -> dict[object, object]:
    """Return the value that wins each bound, soft ones as PAM lowers them."""
    lines = read_lines(files, dialect)
    bounds = resolve_limits(lines, user, dialect, 1048576).bounds
    found: dict[object, Any] = {key: bound.winner.value for key, bound in bounds.items()}
    for item, kind in list(bounds):
        if kind == "soft" and (item, "hard") in found:
            found[item, kind] = min(found[item, kind], found[item, "hard"])
    settings = resolve_settings(lines, user, dialect)
    return {**found, **{item: bound.winner.value for item, bound in settings.items()}}


def write(policy: Policy) -> dict[str, str]:
    """Return the limits files as a policy makes them."""
    rows = [
        row
        for rule in policy.get("sessions") or ()
        for user in rule.users
        for row in format_limits(user, rule.limits)
    ]
    return {PEERS: "\n".join(rows)}


@given(FILES, st.sampled_from([DEBIAN, RED_HAT]))
def test_the_policy_gives_everyone_what_the_lines_gave(
    files: dict[str, str], dialect: Dialect
) -> None:
    section, left = adopt(files, dialect)
    assume(not any("hard half" in one or "above the hard" in one for one in left))
    policy = load_policy(section, "none") if section else Policy()
    for user in USERS:
        assert predict(write(policy), user, dialect) == predict(files, user, dialect)


@given(FILES)
def test_everyone_has_what_the_policy_requires(files: dict[str, str]) -> None:
    """Where each domain states both bounds: else PAM lowers what another domain states."""
    files = {path: text.replace("soft", "-").replace("hard", "-") for path, text in files.items()}
    section, _left = adopt(files)
    policy = load_policy(section, "none") if section else Policy()
    for user in USERS:
        given = predict(files, user, DEBIAN)
        for item, limit in find_limits(policy.get("sessions") or (), user).items():
            if item in RLIMITS:
                assert (given[item, "soft"], given[item, "hard"]) == (limit.soft, limit.hard)
