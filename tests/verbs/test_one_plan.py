# SPDX-License-Identifier: GPL-3.0-or-later
"""The remedies of one report are one plan; who cannot log in is asked nothing of."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from . import library
from .cases import LOGINS
from .files import HOST
from .node import Node

pytestmark = pytest.mark.root  # Mount namespaces are root's.


def find_commands(folder: Path, policy: dict[str, Any], files: dict[str, str]) -> list[str]:
    """Return the commands of all remedies, on a host with these files."""
    node = Node(folder, {path: text for path, text in files.items() if path[:6] != "/proc/"})
    for path, text in files.items():
        node.write(path, text)
    told = node.run(partial(library.check, policy=policy, services=["sshd", "su"]), LOGINS)
    remedies = [cause["remedy"] for one in told["findings"] for cause in one["causes"]]
    return [" ".join(words) for remedy in remedies for words in remedy["commands"]]


def test_what_was_lowered_by_hand_is_not_lowered_for_good(tmp_path: Path) -> None:
    """A boot gives fs.nr_open enough, whatever the sessions of today need."""
    limits = {"nofile": {"soft": 4000, "hard": 4096}}
    policy = {
        "kernel": {"fs.nr_open": 1048576},
        "sessions": [{"users": ["*", "root"], "limits": limits}],
    }
    files = {
        "/proc/sys/fs/nr_open": "2048\n",
        "/etc/security/limits.conf": "",
        "/etc/security/limits.d/95-late.conf": "* - nofile 3000\nroot - nofile 3000\n",
    }
    commands = find_commands(tmp_path, policy, files)
    assert any("fs.nr_open=1048576" in one for one in commands)
    assert any("-ge 3000 ] || sysctl -w fs.nr_open=3000" in one for one in commands)
    assert "/etc/sysctl.d" not in json.dumps(commands)


def test_both_bounds_of_a_line_have_one_edit(tmp_path: Path) -> None:
    limits = {"nofile": {"soft": 3000, "hard": 4000}}
    policy = {"sessions": [{"users": ["*"], "limits": limits}]}
    files = {
        "/etc/security/limits.conf": "",
        "/etc/security/limits.d/95-late.conf": "@ml - nofile 2000\n",
    }
    commands = find_commands(tmp_path, policy, files)
    assert len(commands) == 4
    assert len(set(commands)) == 1
    assert "@ml - nofile 4000" in commands[0]


@pytest.mark.parametrize(("ends", "asked"), [("", True), ("1", False)])
def test_an_account_that_has_ended_has_no_limits_to_judge(
    ends: str, asked: bool, tmp_path: Path
) -> None:
    """Whom lines of the files set apart is judged only where that one can log in."""
    node = Node(tmp_path)
    for path, line in (
        ("/etc/passwd", "bob:x:1001:1001::/home/bob:/bin/sh"),
        ("/etc/shadow", f"bob:*:19000:0:99999:7::{ends}:"),
        ("/etc/security/limits.d/99-bob.conf", "bob - nofile 600"),
    ):
        node.write(path, f"{HOST.get(path, '')}{line}\n")
    policy = {"sessions": [{"users": ["*"], "limits": {"nofile": {"soft": 700}}}]}
    told = node.run(partial(library.check, policy=policy, services=["sshd"]), LOGINS)
    found = {one["place"]: one["status"] for one in told["findings"]}
    assert found == {
        "session:alice@sshd": "pass",
        **({"session:bob@sshd": "fail"} if asked else {}),
    }
