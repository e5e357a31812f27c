# SPDX-License-Identifier: GPL-3.0-or-later
"""Which line sets priority, privileges, root and the number of logins.

``test_pam_limits_oracle.py`` holds the same rules against the real module; here each has a name.
"""

from __future__ import annotations

import pytest
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.values import UNLIMITED, User
from mlhost_limits.sessions.pam_limits import LIMITS_CONF, read_lines, resolve_settings

DEBIAN_11 = Dialect(1023, False, False, ("rttime", "nonewprivs"))
DEBIAN_12 = Dialect(1023, False, True, ("rttime",))
RED_HAT = Dialect(1023)
ROOT = User("root", 0, 0, frozenset({"root"}), frozenset({0}))
ALICE = User("alice", 1001, 2001, frozenset({"alice", "ml"}), frozenset({2001, 2002}))


def resolve(*lines: str, user: User = ALICE, dialect: Dialect = DEBIAN_12) -> dict[str, int | str]:
    read = read_lines({LIMITS_CONF: "\n".join(lines)}, dialect)
    found = resolve_settings(read, user, dialect)
    return {item: bound.winner.value for item, bound in found.items()}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["* - priority 5"], {"priority": 5}),
        (["* both priority 5", "* - nice 5", "* - priority", "bob - priority 5"], {}),
        # The last line that matches counts, however weak its domain.
        (["alice - priority 5", "* - priority 7"], {"priority": 7}),
        (["alice - priority 5", "* - priority x"], {"priority": 5}),
        (["* - nonewprivs 1"], {"nonewprivs": 1}),
        (["* both nonewprivs 1"], {"nonewprivs": 1}),
        (["* - nonewprivs 1", "* - nonewprivs yes"], {"nonewprivs": 0}),
        (["* - chroot /srv/Jail"], {"chroot": "/srv/jail"}),
        (["* both chroot /srv"], {}),
        (["% - priority 5", "%ml - nonewprivs 1", "%ml - chroot /x"], {}),
        (["* - maxlogins 5"], {"maxlogins": 5}),
        (["* any maxlogins -"], {"maxlogins": UNLIMITED}),
        (["alice - maxlogins 5", "@ml - maxlogins 7"], {"maxlogins": 5}),
        (["@ml - maxlogins 5", "%ml - maxlogins 7"], {"maxlogins": 5}),
        (["%ml - maxlogins 5", "% - maxlogins 7"], {"maxlogins": 5}),
        (["%:2002 - maxlogins 5"], {"maxlogins": 5}),
        (["%1000: - maxlogins 5", "%hpc - maxlogins 5", "%2001:2002 - maxlogins 5"], {}),
        (["% - maxlogins 5", "* - maxlogins 7"], {"maxlogins": 5}),
        # Both kinds take one place; the last line says which kind it is.
        (["alice - maxlogins 5", "* - maxsyslogins 7"], {"maxsyslogins": 5}),
        (["* - maxsyslogins 5", "* - maxlogins x"], {"maxlogins": 5}),
        (["* - maxlogins 5", "% - maxsyslogins 7"], {"maxsyslogins": 5}),
        (["* - maxsyslogins 5", "bob - maxlogins 7"], {"maxsyslogins": 5}),
        (["* - priority 5", "alice -"], {}),
        (["bob - priority 5", "alice - priority 3"], {"priority": 3}),
    ],
)
def test_the_line_that_counts(lines: list[str], expected: dict[str, int | str]) -> None:
    assert resolve(*lines) == expected


@pytest.mark.parametrize(
    ("line", "dialect", "user", "expected"),
    [
        ("* - nonewprivs 1", DEBIAN_11, ALICE, {}),
        ("* - chroot /srv", RED_HAT, ALICE, {}),
        ("* - priority 5", DEBIAN_12, ROOT, {}),
        ("* - priority 5", RED_HAT, ROOT, {"priority": 5}),
        ("% - maxlogins 5", DEBIAN_12, ROOT, {}),
        ("%:0 - maxlogins 5", DEBIAN_12, ROOT, {"maxlogins": 5}),
        ("% - maxlogins 5", RED_HAT, ROOT, {"maxlogins": 5}),
    ],
)
def test_what_some_builds_do_not_know(
    line: str, dialect: Dialect, user: User, expected: dict[str, int | str]
) -> None:
    assert resolve(line, dialect=dialect, user=user) == expected


def test_what_is_shadowed_is_known() -> None:
    read = read_lines({LIMITS_CONF: "* - priority 1\n* - priority 2\n"}, DEBIAN_12)
    bound = resolve_settings(read, ALICE, DEBIAN_12)["priority"]
    assert [one.value for one in (*bound.shadowed, bound.winner)] == [1, 2]
