# SPDX-License-Identifier: GPL-3.0-or-later
"""A shell starts under sound limits, and not under those that end a login after PAM."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from pathlib import Path

import pytest
from mlhost_limits.core.values import Rlimit
from mlhost_limits.host.own_limits import read_own_limits
from mlhost_limits.sessions.shell_measure import find_failing_shells

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")


@pytest.mark.parametrize(
    "limits",
    [
        {"as": Rlimit(2**20, 2**20)},
        {"data": Rlimit(0, 0), "as": Rlimit(4096, 4096)},
        {"nofile": Rlimit(0, 0)},
        {"stack": Rlimit(4096, 4096)},
    ],
    ids=lambda limits: next(iter(limits)),
)
def test_a_shell_does_not_start_under_too_little(limits: dict[str, Rlimit]) -> None:
    sound = read_own_limits()
    failing = find_failing_shells([("root", sound), ("root", {**sound, **limits})])
    assert failing[0] == ""
    assert failing[1].startswith("/bin/bash ends with ")


def test_a_shell_that_is_none_is_seen() -> None:
    assert find_failing_shells([("nobody", {})]) == ["/usr/sbin/nologin ends with an error"]


@pytest.mark.root
def test_who_stands_for_everybody_decides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A user whose own files end the shell would undo whatever root writes."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    shell = folder / "sh"
    shell.write_text('#!/bin/sh\n[ "$(id -u)" != 54321 ]\n')
    for path, mode in ((folder, 0o755), (shell, 0o755)):
        path.chmod(mode)
    entry = pwd.struct_passwd(("mallory", "x", 54321, 54321, "", "/nonexistent", str(shell)))
    monkeypatch.setattr("mlhost_limits.sessions.shell_measure.pwd.getpwnam", lambda _name: entry)
    session = ("mallory", read_own_limits())
    try:
        assert find_failing_shells([session]) == [f"{shell} ends with an error"]
        assert find_failing_shells([session], ["mallory"]) == [""]
        broken = {**read_own_limits(), "nofile": Rlimit(0, 0)}
        assert find_failing_shells([("mallory", broken)], ["mallory"]) != [""]
    finally:
        shutil.rmtree(folder)
