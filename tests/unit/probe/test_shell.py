# SPDX-License-Identifier: GPL-3.0-or-later
"""A shell starts under sound limits, and not under those that end a login after PAM."""

from __future__ import annotations

import os

import pytest
from mlhost_limits.policy.rlimit import Rlimit
from mlhost_limits.probe.libpam import read_own_limits
from mlhost_limits.probe.shell import find_failing_shells

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
