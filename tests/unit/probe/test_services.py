# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of a policy are found among what runs: instances and prefixes, never containers."""

from __future__ import annotations

import pytest
from mlhost_limits.probe.process import Process
from mlhost_limits.probe.services import (
    find_slices,
    find_units,
    find_user_managers,
    is_template,
    match_unit,
    pick_oldest,
)


def process(pid: int, path: str, comm: str = "x") -> Process:
    return Process(pid, comm, 0, f"0::{path}", pid)


USER = "/user.slice/user-1000.slice/user@1000.service"
PROCESSES = [
    process(9, "/system.slice/trainer.service"),
    process(8, "/system.slice/trainer.service/sub"),
    process(7, "/system.slice/system-worker.slice/worker@1.service"),
    process(6, "/system.slice/docker.service/docker/0123456789abcdef"),
    process(5, f"{USER}/init.scope", "systemd"),
    process(4, f"{USER}/init.scope", "(sd-pam)"),
    process(3, f"{USER}/app.slice/worker@2.service"),
    process(2, "/user.slice/user-0.slice/session-1.scope"),
]


@pytest.mark.parametrize(
    ("unit", "name", "means"),
    [
        ("a.service", "a.service", True),
        ("a.service", "b.service", False),
        ("a@.service", "a@1.service", True),
        ("a@.service", "a@.service", False),
        ("a@1.service", "a@1.service", True),
        ("user-.slice", "user-0.slice", True),
        ("user-.slice", "user.slice", False),
        ("a-.service", "a-b.slice", False),
    ],
)
def test_what_a_unit_of_a_policy_means(unit: str, name: str, means: bool) -> None:
    assert match_unit(unit, name) is means


@pytest.mark.parametrize(
    ("unit", "found"),
    [
        ("trainer.service", {"trainer.service": [9, 8]}),
        ("worker@.service", {"worker@1.service": [7]}),
        ("docker.service", {}),
        ("user@.service", {"user@1000.service": [5, 4]}),
    ],
)
def test_the_services_that_run(unit: str, found: dict[str, list[int]]) -> None:
    units = find_units(unit, PROCESSES)
    assert {name: [one.pid for one in members] for name, members in units.items()} == found


def test_slices_and_managers_of_users() -> None:
    slices = find_slices("user-.slice", PROCESSES)
    assert {name: one.pid for name, one in slices.items()} == {
        "user-1000.slice": 5,
        "user-0.slice": 2,
    }
    assert {uid: one.pid for uid, one in find_user_managers(PROCESSES).items()} == {1000: 5}
    assert pick_oldest(PROCESSES).pid == 2


def test_names_that_stand_for_many() -> None:
    assert [is_template(name) for name in ("a@.service", "a-.slice", "a@b.service")] == [
        True,
        True,
        False,
    ]
