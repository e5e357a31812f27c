# SPDX-License-Identifier: GPL-3.0-or-later
"""Nobody whom limits files treat apart passes because somebody else does."""

from __future__ import annotations

import pytest
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import User
from mlhost_limits.sessions.limits_conf import parse_limits_conf
from mlhost_limits.sessions.samples_read import Different, People, find_different

PEOPLE = {
    name: User(name, uid, uid, frozenset({name, *groups}), frozenset({uid}))
    for name, uid, groups in (
        ("root", 0, ()), ("alice", 1000, ("ml",)), ("bob", 1001, ("ml", "ops")), ("carol", 1002, ()),
    )
}  # fmt: skip
EVERYONE = "* soft nofile 65536\n* hard nofile 65536\n"
WANTED = {"nofile": Limit(65536, 65536)}


def differ(text: str, most: int = 100) -> Different:
    people = People(
        PEOPLE.get,
        lambda group: [name for name, user in PEOPLE.items() if group in user.groups],
        lambda _range: ["bob", "carol"],
    )
    return find_different(
        parse_limits_conf(text, "/x"),
        [PEOPLE["alice"]],
        lambda user: WANTED if user.uid else {},
        people,
        Dialect(),
        most,
    )


@pytest.mark.parametrize(
    ("lines", "short", "enough"),
    [
        ("", (), ()),
        ("bob - nofile 1024\n", ("bob",), ()),
        ("bob - nofile 131072\n", (), ("bob",)),
        ("bob - nofile 65536\n", (), ()),
        ("bob -\n", ("bob",), ()),
        ("zed - nofile 1024\n", (), ()),
        ("root - nofile 1024\n", (), ()),
        ("@ops hard nofile 1024\n", ("bob",), ()),
        ("@ml hard nofile 1024\n", (), ()),  # alice, who is sampled, is in that group.
        ("1001: soft nofile 1024\n", ("bob",), ()),  # carol has the same.
        ("bob soft nofile 1024\ncarol - nofile 99999\n", ("bob",), ("carol",)),
    ],
)
def test_who_has_other_limits(lines: str, short: tuple[str, ...], enough: tuple[str, ...]) -> None:
    assert differ(EVERYONE + lines) == Different(short, enough)


def test_names_that_nobody_looked_up_are_counted() -> None:
    lines = "".join(f"user{number} - nofile 5\n" for number in range(50))
    assert differ(EVERYONE + lines, most=20) == Different((), (), 30)
