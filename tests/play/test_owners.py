# SPDX-License-Identifier: GPL-3.0-or-later
"""Each managed file has one owner in a play: a second policy for it is refused before it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.plugin_utils.owners import claim

from .plays import ASKED, LATE, include, play, provision

LINES = [{"users": ["@ml"], "limits": {"nofile": 4096}}]
LIMITS = "/etc/security/limits.d/90-mlhost.conf"
ROLE = {"sections": ["sessions"], "policy": {"sessions": LINES}}


def note(folder: Path, *tasks: dict[str, Any], play: str = "one", host: str = "a") -> list[str]:
    """Return what is wrong with the last of some tasks."""
    problems: list[str] = []
    for number, arguments in enumerate(tasks, 1):
        problems = claim(arguments, f"task {number}", host, play, str(folder))
    return problems


def test_a_second_policy_for_a_file_is_refused(tmp_path: Path) -> None:
    assert note(tmp_path, ROLE, {}) == [
        f"{LIMITS}: task 2 would write it for another policy than task 1 did in this play, and"
        " each would undo the other; put both into one mlhost_limits_policy, or name fewer sections"
    ]


@pytest.mark.parametrize(
    "second",
    [
        ROLE,
        {**ROLE, "profile": "none"},  # The list replaces that of the profile.
        {"sections": "kernel, docker"},
        {"sections": ["sessions"], "sessions_file": "/etc/security/limits.d/91-own.conf"},
        {"state": "absent"},
        {"policy": '{"sessions": [{"users": ["@ml"], "limits": {"nofile": 4096}}]}'},
    ],
)
def test_what_writes_the_same_or_elsewhere_is_let_through(
    tmp_path: Path, second: dict[str, Any]
) -> None:
    assert note(tmp_path, ROLE, second) == []


@pytest.mark.parametrize(
    "second",
    [
        {},
        {**ROLE, "override": True},
        {"profile": "none", "policy": {"kernel": {"a.b": 1}}},  # It would take the lines back.
        {**ROLE, "policy": {"sessions": None}},
    ],
)
def test_what_would_undo_the_first_is_refused(tmp_path: Path, second: dict[str, Any]) -> None:
    assert [one.partition(":")[0] for one in note(tmp_path, ROLE, second)] == [LIMITS]


def test_other_plays_and_hosts_are_left_alone(tmp_path: Path) -> None:
    note(tmp_path, ROLE)
    assert note(tmp_path, {}, host="b") == []
    assert note(tmp_path, {}, play="two") == []


def test_what_was_taken_back_may_be_written_again(tmp_path: Path) -> None:
    assert note(tmp_path, ROLE, {"state": "absent"}, {}) == []


def test_a_refused_task_owns_nothing(tmp_path: Path) -> None:
    assert note(tmp_path, ROLE, {}, ROLE) == []
    assert note(tmp_path, {}) != []


def test_two_roles_of_a_play_are_named_and_the_second_writes_nothing(tmp_path: Path) -> None:
    """In check mode too: that is where one would like to know."""
    tasks = [
        {**include("kernel", profile="none", policy=ASKED, verify=False), "name": "first"},
        {
            **include("host", profile="none", policy={"kernel": {"fs.file-max": 1}}),
            "name": "second",
        },
    ]
    for words in ((), ("--check",)):
        done = play(tmp_path, tasks, *words, before=LATE)
        said = " ".join((done.stdout + done.stderr).split())
        assert "changed=1 unreachable=0 failed=1" in said, said
        assert (
            "/etc/sysctl.d/90-mlhost.conf: role mlhost.limits.host would write it for another"
            " policy than role mlhost.limits.kernel did in this play"
        ) in said


def test_one_policy_for_two_roles_is_written_once(tmp_path: Path) -> None:
    first = provision(policy=ASKED, sections=["kernel"])
    second = include("kernel", profile="none", policy=ASKED)
    done = play(tmp_path, [first, second], before=LATE)
    assert "changed=1" in done.stdout, done.stdout + done.stderr
    assert "failed=0" in done.stdout
