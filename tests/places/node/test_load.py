# SPDX-License-Identifier: GPL-3.0-or-later
"""Of the processes of a user in a unit, those nearest to a limit are told of."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.node.load import Load, group_loads, name_unit

SSHD = "0::/system.slice/ssh.service"


def load(pid: int = 1, **changes: object) -> Load:
    return Load(pid, "p", 0, SSHD, 5, 1024, 0, 0, 8192)._replace(**changes)


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        (SSHD, "ssh.service"),
        ("0::/user.slice/user-1000.slice/session-7.scope", "session"),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service", "x.service"),
        ("0::/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service"),
        ("0::/system.slice/docker-0123456789abcdef.scope", "container"),
        ("0::/", ""),
        ("", ""),
        ("12:pids:/x\n1:name=systemd:/system.slice/cron.service", "cron.service"),
    ],
)
def test_a_unit_has_a_name_that_stays(cgroup: str, unit: str) -> None:
    assert name_unit(cgroup) == unit


def test_the_fullest_is_the_one_with_the_largest_part_of_its_own_limit() -> None:
    many = load(2, open_files=500, nofile=1048576)
    (group,) = group_loads([load(1), many, load(3, open_files=60, nofile=64)])
    assert group.fullest
    assert (group.processes, group.fullest.pid) == (3, 3)


def test_a_process_that_may_have_none_is_full() -> None:
    (group,) = group_loads([load(1, open_files=1000), load(2, open_files=3, nofile=0)])
    assert group.fullest
    assert group.fullest.pid == 2


def test_a_process_with_nothing_open_comes_behind_one_that_holds_a_little() -> None:
    first = load(1, uid=1, open_files=0, nofile=4)
    second = load(2, uid=2, open_files=1, nofile=8)
    assert [group.uid for group in group_loads([first, second])] == [2, 1]


def test_what_could_not_be_seen_is_not_told() -> None:
    (group,) = group_loads([load(1, open_files=None)])
    assert group.fullest is None


@pytest.mark.parametrize(
    ("changes", "heaviest"),
    [
        ({"locked": 8000}, 2),
        ({"pinned": 8000}, 2),
        ({"locked": 10**9, "memlock": UNLIMITED}, 1),
        ({"locked": 1, "memlock": 0}, 2),
        ({"memlock": 0}, 1),
    ],
)
def test_the_heaviest_holds_most_of_what_it_may_lock(
    changes: dict[str, int], heaviest: int
) -> None:
    (group,) = group_loads([load(1, locked=100), load(2, **changes)])
    assert group.heaviest.pid == heaviest
    assert group.locked == 100 + changes.get("locked", 0)
    assert group.pinned == changes.get("pinned", 0)


def test_those_nearest_to_a_limit_come_first() -> None:
    groups = group_loads(
        [
            load(1, uid=1),
            load(2, uid=2, open_files=1000),
            load(3, uid=3, locked=8192),
            load(4, uid=0, cgroup="0::/"),
        ]
    )
    assert [(group.uid, group.unit) for group in groups] == [
        (3, "ssh.service"),
        (2, "ssh.service"),
        (0, ""),
        (1, "ssh.service"),
    ]
