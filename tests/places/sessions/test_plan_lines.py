# SPDX-License-Identifier: GPL-3.0-or-later
"""Which line of others is made ineffective, which stands in nobody's way, and which is noted."""

from __future__ import annotations

import pytest
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.reader import Limit
from mlhost_limits.sessions.pam_limits import LIMITS_CONF, LIMITS_D
from mlhost_limits.sessions.plan import _LONGEST_NEUTRAL_LINE, SessionsOptions, plan_sessions
from mlhost_limits.sessions.policy import SessionRule

LATER = f"{LIMITS_D}/99-vendor.conf"


def plan(user: str, later: str, dialect: Dialect) -> SectionPlan:
    rule = SessionRule((user,), {"nofile": Limit(65536, 65536)})
    files = {LIMITS_CONF: "#\n", LATER: later}
    options = SessionsOptions(override=True)
    return plan_sessions((rule,), files, dialect, 1048576, options)


@pytest.mark.parametrize("more", [0, 1])
def test_the_longest_line_that_is_made_ineffective(more: int) -> None:
    line = "alice soft nofile 5".ljust(_LONGEST_NEUTRAL_LINE + more)
    (shortfall,) = plan("alice", f"#\n{line}\n# {'x' * 2000}\n", Dialect(1023)).shortfalls
    assert shortfall.neutralized is not bool(more)


@pytest.mark.parametrize(
    ("line", "user", "wildcard_root", "told"),
    [
        ("bob soft nofile 5", "root", True, False),
        ("root soft nofile 5", "root", True, True),
        ("@ml soft nofile 5", "@hpc", True, True),
        ("@ml soft nofile 5", "alice", True, False),
        ("alice soft nofile 5", "@ml", True, True),
        ("* soft nofile 5", "@ml", True, False),
        ("@ml soft nofile 5", "*", True, True),
        ("root soft nofile 5", "*", True, True),
        ("root soft nofile 5", "*", False, False),
        ("0:0 soft nofile 5", "alice", True, False),
        ("@ml soft nofile 5", "root", False, False),
    ],
)
def test_the_lines_that_stand_in_the_way(
    line: str, user: str, wildcard_root: bool, told: bool
) -> None:
    found = plan(user, f"{line}\n", Dialect(1023, wildcard_root=wildcard_root)).shortfalls
    assert [one.foreign.text for one in found] == [line] * told


def test_a_line_that_stands_in_nobodys_way_and_says_too_little_is_noted() -> None:
    planned = plan("alice", "bob - core 0\nbob - nofile 5\nalice - nofile 5\n", Dialect(1023))
    assert [one.foreign.line for one in planned.shortfalls] == [3]
    (note,) = [one for one in planned.notes if one.startswith(LATER)]
    assert note.startswith(f'{LATER}:2 "bob - nofile 5" means 5 to PAM: ')
