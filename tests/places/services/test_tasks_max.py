# SPDX-License-Identifier: GPL-3.0-or-later
"""How many tasks a unit may hold is predicted as systemd reads it."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.services.tasks_causes import (
    MOST,
    is_heeded,
    predict_default,
    predict_tasks,
    read_unit_tasks,
    resolve_tasks,
)
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_file import Source

from tests.worlds.distributions import DEBIAN

ALL = 20000


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4096", 4096),
        ("infinity", UNLIMITED),
        ("", None),
        ("33%", 6600),
        ("33.3%", 6660),
        ("99.9%", 19980),
        ("1", 1),
        ("33.33%", 6666),
        ("100%", ALL),
        ("0%", 0),
        ("5\u2030", 100),
        ("5\u2031", 10),
        ("0.9\u2030", 18),
        ("1.99\u2031", 2),
        ("99.99%", 19998),
        ("100.00%", ALL),
        ("0x10", 16),
    ],
)
def test_values(text: str, number: int | None) -> None:
    assert resolve_tasks(text.encode().decode("latin-1"), ALL) == number


@pytest.mark.parametrize(
    "text", ["0", "-1", "101%", "100.01%", "64K", "unlimited", "1e3", "4096 # x", "\xff", "33.333%"]
)
def test_values_that_systemd_ignores(text: str) -> None:
    assert not is_heeded(text)


def files(main: str = "", *dropins: str, manager: str = "", conf_d: str = "") -> Files:
    return Files(
        Source("/lib/x", main),
        tuple(Source(f"/etc/x.d/{number}.conf", text) for number, text in enumerate(dropins)),
        Source("/etc/systemd/system.conf", manager) if manager else None,
        (Source("/etc/systemd/system.conf.d/a.conf", conf_d),) if conf_d else (),
        vendor=DEBIAN,
    )


@pytest.mark.parametrize(
    ("kind", "known", "number"),
    [
        ("service", files(), 3000),
        ("slice", files(), UNLIMITED),
        ("service", files("[Service]\nTasksMax=7"), 7),
        ("service", files("[Slice]\nTasksMax=7"), 3000),
        ("slice", files("[Slice]\nTasksMax=33%"), 6600),
        ("service", files("[Service]\nTasksMax=7", "[Service]\nTasksMax=8"), 8),
        ("service", files("[Service]\nTasksMax=7", "[Service]\nTasksMax=8K"), 7),
        ("service", files("[Service]\nTasksMax=7", "[Service]\nTasksMax="), 3000),
        ("service", files(manager="[Manager]\nDefaultTasksMax=9"), 9),
        ("service", files(manager="[Manager]\nDefaultTasksMax="), UNLIMITED),
        ("service", files(manager="[Manager]\nDefaultTasksMax=9", conf_d="[Manager]\nDefaultTasksMax=10"), 10),
        ("service", files(manager="[Manager]\nDefaultTasksMax=9\n[broken", conf_d="[Manager]\nDefaultTasksMax=10"), 9),
        ("service", files("[Service]\nTasksMax=7\n[broken", "[Service]\nTasksMax=8"), 8),
        ("timer", files("[Service]\nTasksMax=7"), 3000),
        ("service", Files(None, vendor=DEBIAN), 3000),
    ],
)  # fmt: skip
def test_what_a_unit_gets(kind: str, known: Files, number: int) -> None:
    assert predict_tasks(kind, known, ALL) == number


def test_what_a_unit_gets_that_states_nothing() -> None:
    assert predict_default(files("[Service]\nTasksMax=7"), ALL) == 3000


def test_the_line_is_named() -> None:
    (at,) = read_unit_tasks("service", files("[Service]\n#\nTasksMax = 7"))
    assert (at.place, at.text, at.value) == ("/lib/x:3", "TasksMax=7", "7")


def test_no_kernel_numbers_more_tasks() -> None:
    """``PID_MAX_LIMIT`` of include/linux/threads.h."""
    assert MOST == 4194304
