# SPDX-License-Identifier: GPL-3.0-or-later
"""Which line of the limits files wins, in the orders and dialects that pam_limits has.

``test_pam_limits_oracle.py`` holds the same rules against the real module; here each has a name.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.distribution import Dialect, find_distribution
from mlhost_limits.core.values import Bound, User
from mlhost_limits.sessions import pam_limits
from mlhost_limits.sessions.pam_limits import (
    LIMITS_CONF,
    LIMITS_D,
    VENDOR_LIMITS_CONF,
    find_obstacle,
    order_files,
    rank_domain,
    read_lines,
    resolve_limits,
    stops_for,
)

DEBIAN_11 = Dialect(1023, False, False, ("rttime", "nonewprivs"), True)
DEBIAN_12 = Dialect(1023, False, True, ("rttime",), True)
DEBIAN_13 = Dialect(0, False, True, ("rttime",))
UBUNTU_24 = DEBIAN_12._replace(needs_files=False)
RED_HAT = Dialect(1023)
RED_HAT_9 = Dialect(1023, needs_files=True)
RED_HAT_8 = RED_HAT_9._replace(unknown=("rttime", "chroot", "nonewprivs"))
UNKNOWN = RED_HAT_9._replace(is_known=False)
LIKELY_UBUNTU = DEBIAN_13._replace(is_known=False)
ROOT = User("root", 0, 0, frozenset({"root"}), frozenset({0}))
ALICE = User("alice", 1001, 2001, frozenset({"alice", "ml"}), frozenset({2001, 2002}))


def resolve(
    *lines: str,
    user: User = ALICE,
    dialect: Dialect = DEBIAN_12,
    drop_ins: dict[str, str] | None = None,
) -> dict[str, int | str]:
    """Return ``{"nofile soft": 5}`` for limits.conf lines and drop-ins, or where it stops."""
    files = {LIMITS_CONF: "\n".join(lines)}
    files.update({f"{LIMITS_D}/{name}": text for name, text in (drop_ins or {}).items()})
    found = resolve_limits(read_lines(files, dialect), user, dialect, nr_open=1048576)
    if found.stopped_by:
        return {"stopped": found.stopped_by.place}
    return {f"{item} {kind}": bound.winner.value for (item, kind), bound in found.bounds.items()}


@pytest.mark.parametrize(
    ("os_release", "dialect"),
    [
        ({"ID": "debian", "VERSION_ID": "12"}, DEBIAN_12),
        ({"ID": "debian", "VERSION_ID": "13"}, DEBIAN_13),
        ({"ID": "debian"}, DEBIAN_13._replace(is_known=False)),
        ({"ID": "debian", "VERSION_ID": "14"}, DEBIAN_13._replace(is_known=False)),
        ({"ID": "raspbian", "ID_LIKE": "debian", "VERSION_ID": "11"}, DEBIAN_11),
        ({"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_ID": "20.04"}, DEBIAN_11),
        ({"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_ID": "22.04"}, DEBIAN_11),
        ({"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_ID": "24.04"}, UBUNTU_24),
        ({"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_ID": "26.04"}, DEBIAN_13),
        (
            {
                "ID": "linuxmint",
                "ID_LIKE": "ubuntu",
                "VERSION_ID": "22",
                "UBUNTU_CODENAME": "noble",
            },
            UBUNTU_24,
        ),
        (
            {
                "ID": "linuxmint",
                "ID_LIKE": "ubuntu",
                "VERSION_ID": "21",
                "UBUNTU_CODENAME": "jammy",
            },
            DEBIAN_11,
        ),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu", "VERSION_ID": "22"}, LIKELY_UBUNTU),
        ({"ID": "rhel", "ID_LIKE": "fedora", "VERSION_ID": "9.4"}, RED_HAT_9),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora", "VERSION_ID": "8.9"}, RED_HAT_8),
        ({"ID": "rhel", "ID_LIKE": "fedora", "VERSION_ID": "10.0"}, Dialect()),
        ({"ID": "rhel", "ID_LIKE": "fedora", "VERSION_ID": "11"}, UNKNOWN),
        ({"ID": "amzn", "ID_LIKE": "fedora", "VERSION_ID": "2023"}, RED_HAT_9),
        ({"ID": "amzn", "ID_LIKE": "centos rhel fedora", "VERSION_ID": "2"}, UNKNOWN),
        ({"ID": "azurelinux", "VERSION_ID": "3.0"}, UNKNOWN),
        ({"ID": "sles", "ID_LIKE": "suse", "VERSION_ID": "15.6"}, UNKNOWN),
        ({"ID": "fedora", "VERSION_ID": "8"}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_the_dialect_of_a_distribution(os_release: dict[str, str], dialect: Dialect) -> None:
    assert find_distribution(os_release).pam == dialect


def test_files_are_read_in_the_order_of_bytes() -> None:
    names = [
        "a.conf",
        "B.conf",
        "9-z.conf",
        "10-a.conf",
        ".hidden.conf",
        "a.CONF",
        "a.conf.bak",
        "x/y.conf",
    ]
    files = dict.fromkeys(
        [f"{LIMITS_D}/{name}" for name in names] + [LIMITS_CONF, "/etc/other.conf"], ""
    )
    assert order_files(files) == [
        LIMITS_CONF,
        *(f"{LIMITS_D}/{name}" for name in ("10-a.conf", "9-z.conf", "B.conf", "a.conf")),
    ]
    assert order_files({}) == []
    assert order_files(dict.fromkeys((VENDOR_LIMITS_CONF, LIMITS_CONF), "")) == [LIMITS_CONF]
    assert order_files({VENDOR_LIMITS_CONF: ""}) == [VENDOR_LIMITS_CONF]


@pytest.mark.parametrize(
    ("domain", "alice", "root_on_debian", "root_elsewhere"),
    [
        ("alice", 0, None, None),
        ("root", None, 0, 0),
        ("Alice", None, None, None),
        ("1001", None, None, None),
        ("*", 4, None, 4),
        ("@ml", 1, None, None),
        ("@root", None, None, 1),
        ("@2001", None, None, None),
        ("@", None, None, None),
        ("1001:1001", 0, None, None),
        ("1000:", 0, None, None),
        ("1002:", None, None, None),
        (":1001", 0, None, None),
        (":1002", None, None, None),  # The number after a bare colon is no maximum.
        ("0:", 0, 0, 0),
        (":0", None, 0, 0),
        ("0:0", None, 0, 0),
        ("1001:1000", None, None, None),
        ("@2001:2001", 1, None, None),
        ("@2002:2002", None, None, None),  # A range asks for the primary group.
        ("@:2002", 1, None, None),  # An exact gid takes any.
        ("@:2003", None, None, None),
        (f"{2**32 + 1001}:{2**32 + 1001}", 0, None, None),  # An id has 32 bits.
        ("@2000:", 1, None, None),
        ("@:0", None, 0, 1),  # Debian's patch leaves root the ranges, and takes them for uids.
        ("@0:99", None, 0, 1),
        ("%ml", None, None, None),
        ("%", None, None, None),
        ("%:2001", None, None, None),
        ("%:0", None, 0, None),
        (":", None, None, None),
        ("@:", None, None, None),
        ("1:2:3", None, None, None),
        ("x:1001", None, None, None),
        ("1001:x", None, None, None),
        ("+1000:+1002", 0, None, None),
        ("-1:", None, None, None),
        ("4294968297:4294968297", 0, None, None),  # 2**32 + 1001
        ("18446744073709551616:", None, None, None),
        ("0" * 30 + "1001:1001", 0, None, None),
        ("9" * 5000 + ":", None, None, None),
        ("1000:\r1002", 0, None, None),
        ("@\v2001:", 1, None, None),
        ("\r:1001", None, None, None),
    ],
)
def test_the_strength_of_a_domain(
    domain: str, alice: int | None, root_on_debian: int | None, root_elsewhere: int | None
) -> None:
    assert rank_domain(domain, ALICE, DEBIAN_12) == rank_domain(domain, ALICE, RED_HAT) == alice
    assert rank_domain(domain, ROOT, DEBIAN_12) == root_on_debian
    assert rank_domain(domain, ROOT, RED_HAT) == root_elsewhere


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["* soft nofile 1", "* soft nofile 2"], {"nofile soft": 2}),
        (["alice soft nofile 1", "* soft nofile 2"], {"nofile soft": 1}),
        (["alice soft nofile 1", "@ml soft nofile 2"], {"nofile soft": 1}),
        (["@ml soft nofile 1", "* soft nofile 2"], {"nofile soft": 1}),
        (["alice soft nofile 1", "1000: soft nofile 2"], {"nofile soft": 2}),
        (["ALICE soft nofile 1"], {}),
        (["* HARD NoFile UNLIMITED"], {"nofile hard": 1048576}),
        (["* both nofile 1", "* soft nofiles 1", "* soft nofile x"], {}),
        (["* - maxlogins 1", "* - chroot /x", "* - priority 1", "* - nonewprivs 1"], {}),
        # The '-' line returns at its soft half, and its hard half is lost.
        (["alice soft nofile 1000", "@ml - nofile 5000"], {"nofile soft": 1000}),
        (
            ["@ml - nofile 5000", "alice soft nofile 1000"],
            {"nofile soft": 1000, "nofile hard": 5000},
        ),
        # One that loses its hard half alone has set the soft one.
        (["alice hard nofile 9", "@ml - nofile 5"], {"nofile hard": 9, "nofile soft": 5}),
        (["* soft nofile 1", "% soft nofile 2", "%ml soft nofile 2"], {"nofile soft": 1}),
    ],
)
def test_the_line_that_wins(lines: list[str], expected: dict[str, int]) -> None:
    assert resolve(*lines) == expected


@pytest.mark.parametrize(
    ("lines", "user", "dialect", "stopped"),
    [
        (["* - nofile 5", "alice -"], ALICE, DEBIAN_12, True),
        (["@ml -"], ALICE, DEBIAN_12, True),
        (["@:2002 -x"], ALICE, DEBIAN_12, True),
        (["1000: -"], ALICE, DEBIAN_12, True),
        (["%1000: -"], ALICE, DEBIAN_12, True),
        (["%ml -"], ALICE, DEBIAN_12, False),
        (["* -"], ALICE, DEBIAN_12, False),
        (["bob -", "@hpc -", ":1002 -", "alice soft"], ALICE, DEBIAN_12, False),
        (["@root -"], ROOT, DEBIAN_12, True),
        (["* -"], ROOT, RED_HAT, False),
        (["alice -\r"], ALICE, DEBIAN_13, True),
    ],
)
def test_a_line_of_two_fields_ends_everything(
    lines: list[str], user: User, dialect: Dialect, stopped: bool
) -> None:
    assert ("stopped" in resolve(*lines, user=user, dialect=dialect)) is stopped


def test_a_stop_in_a_drop_in_takes_back_what_was_read_before() -> None:
    found = resolve("* - nofile 5", drop_ins={"a.conf": "# note\nalice -\n", "b.conf": "alice -"})
    assert found == {"stopped": f"{LIMITS_D}/a.conf:2"}


@pytest.mark.parametrize(
    ("user", "dialect", "expected"),
    [
        (ALICE, DEBIAN_12, {"nofile soft": 3}),
        (ALICE, DEBIAN_13, {"nofile soft": 3}),
        (ROOT, DEBIAN_12, {}),
        (ROOT, DEBIAN_13, {}),
        (ROOT, RED_HAT, {"nofile soft": 3}),
    ],
)
def test_the_wildcard_means_root_on_some(
    user: User, dialect: Dialect, expected: dict[str, int]
) -> None:
    assert resolve("* soft nofile 3", user=user, dialect=dialect) == expected


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        ("* soft memlock unlimited\r", {"memlock soft": 2**64 - 1}, {}),
        ("* soft nofile 65536\r", {"nofile soft": 65536}, {"nofile soft": 65536}),
        ("* soft nofile unlimited foo", {"nofile soft": 1048576}, {}),
        ("#".ljust(1023) + "* soft nofile 4097", {"nofile soft": 4097}, {}),
        ("\xef\xbb\xbf* soft nofile 5", {}, {}),
    ],
)
def test_what_newer_builds_read_otherwise(
    line: str, old: dict[str, int], new: dict[str, int]
) -> None:
    assert resolve(line, dialect=DEBIAN_12) == old
    assert resolve(line, dialect=DEBIAN_13) == new


def test_an_unlimited_nofile_stays_so_where_fs_nr_open_is_not_read() -> None:
    """The kernel refuses it, and the session keeps what it inherits."""
    assert resolve("* hard nofile unlimited", dialect=DEBIAN_11) == {"nofile hard": 2**64 - 1}
    assert resolve("* hard nofile unlimited", dialect=DEBIAN_12) == {"nofile hard": 1048576}


def test_an_item_unknown_to_the_builds_is_skipped() -> None:
    assert resolve("* soft rttime 5") == {}


@pytest.mark.parametrize(
    ("files", "hanging", "obstacle"),
    [
        ({LIMITS_CONF: ""}, [], None),
        ({}, [], LIMITS_CONF),
        ({f"{LIMITS_D}/a.conf": "alice -"}, [], LIMITS_CONF),
        ({LIMITS_CONF: ""}, [f"{LIMITS_D}/b.conf"], f"{LIMITS_D}/b.conf"),
        ({LIMITS_CONF: ""}, [f"{LIMITS_D}/.b.conf", f"{LIMITS_D}/b"], None),
        ({LIMITS_CONF: "alice -"}, [f"{LIMITS_D}/b.conf"], None),
        ({LIMITS_CONF: "bob -"}, [f"{LIMITS_D}/b.conf"], f"{LIMITS_D}/b.conf"),
        ({LIMITS_CONF: "", f"{LIMITS_D}/a.conf": "@ml -"}, [f"{LIMITS_D}/b.conf"], None),
    ],
)
def test_a_file_that_is_missing_ends_logins_in_older_builds(
    files: dict[str, str], hanging: list[str], obstacle: str | None
) -> None:
    assert find_obstacle(files, hanging, ALICE, DEBIAN_12) == obstacle
    assert find_obstacle(files, hanging, ALICE, DEBIAN_13) is None


def test_an_obstacle_is_found_without_a_look_at_the_values_of_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    monkeypatch.setattr(pam_limits, "parse_value", lambda *_words: read.append("a value"))
    monkeypatch.setattr(pam_limits, "rank_domain", lambda *_words: read.append("a domain"))
    files, hanging = {LIMITS_CONF: "bob - nofile 5\n"}, f"{LIMITS_D}/b.conf"
    assert find_obstacle(files, [hanging], ALICE, DEBIAN_12) == hanging
    monkeypatch.setattr(pam_limits, "read_lines", lambda *_words: read.append("a file"))
    assert find_obstacle(files, [], ALICE, DEBIAN_12) is None
    assert read == []


def test_a_winner_knows_what_it_shadows_strongest_last() -> None:
    text = "alice soft nofile 1\n@ml soft nofile 2\n* soft nofile 3\nalice soft nofile 4\r\n"
    found = resolve_limits(read_lines({LIMITS_CONF: text}, DEBIAN_12), ALICE, DEBIAN_12)
    bound = found.bounds["nofile", "soft"]
    assert (bound.winner.place, bound.winner.text) == (f"{LIMITS_CONF}:4", "alice soft nofile 4\r")
    assert [one.value for one in bound.shadowed] == [3, 2, 1]


NAMES = st.sampled_from(["*", "alice", "@ml", "root", ":0", "1000:", "@:2002", "bob"])
ENTRIES = st.tuples(NAMES, st.sampled_from(["soft", "hard", "-"]), st.integers(1, 9).map(str))


@given(
    st.lists(ENTRIES),
    st.sampled_from([ALICE, ROOT]),
    st.sampled_from([DEBIAN_12, DEBIAN_13, RED_HAT]),
)
def test_no_shadowed_line_is_stronger(
    entries: list[tuple[str, str, str]], user: User, dialect: Dialect
) -> None:
    text = "".join(f"{name} {kind} nofile {value}\n" for name, kind, value in entries)
    found = resolve_limits(read_lines({LIMITS_CONF: text}, dialect), user, dialect)
    for bound in found.bounds.values():
        assert ranks(bound, user, dialect) == sorted(ranks(bound, user, dialect), reverse=True)


def ranks(bound: Bound, user: User, dialect: Dialect) -> list[int]:
    found: list[int] = []
    for line in (*bound.shadowed, bound.winner):
        rank = rank_domain(line.text.split()[0], user, dialect)
        assert rank is not None
        found.append(rank)
    return found


@pytest.mark.parametrize(
    ("release", "resets"), [("11", True), ("12", True), ("13", False)], ids=["11", "12", "13"]
)
def test_debian_started_sessions_over(release: str, resets: bool) -> None:
    """Until its PAM 1.7.0 every session started from the limits of process 1."""
    assert find_distribution({"ID": "debian", "VERSION_ID": release}).pam.resets is resets


@pytest.mark.parametrize(
    ("domain", "stops"),
    [
        ("alice", True),
        ("bob", False),
        ("@ml", True),
        ("@sudo", False),
        ("1001", False),
        ("1001:", True),
        ("1001:1003", True),
        ("2001:3003", False),
        ("%1001:1003", True),
        ("%2001:3003", False),
        ("*", False),
        ("alice - nofile", False),
    ],
)
def test_whom_a_line_of_two_fields_stops(domain: str, stops: bool) -> None:
    (line,) = read_lines({LIMITS_CONF: f"{domain} -"}, Dialect())
    assert stops_for(line, ALICE) is stops
