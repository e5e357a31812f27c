# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is bad by what root decides alone, and good again only when that is seen to be."""

from __future__ import annotations

import pytest
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from mlhost_limits.monitor import judge_node

KEY = ("kernel", "fs.file-max", "value")


def find(status: str, owner: str = "", bound: str = "value") -> Finding:
    wanted = Requirement("kernel", "fs.file-max", bound, 5)
    return Finding(status, wanted, Observation(1, "x"), owner=owner)


@pytest.mark.parametrize(
    ("findings", "before", "status", "short"),
    [
        ([], [], PASS, ()),
        ([find(PASS)], [KEY], PASS, ()),
        ([find(FAIL)], [], FAIL, (KEY,)),
        ([find(FAIL, "bob")], [], PASS, ()),
        ([find(FAIL, "bob"), find(FAIL)], [], FAIL, (KEY,)),
        ([find(UNKNOWN)], [], PASS, ()),
        ([find(UNKNOWN)], [KEY], UNKNOWN, (KEY,)),
        ([find(UNKNOWN, "bob")], [KEY], UNKNOWN, (KEY,)),
        ([find(UNKNOWN, bound="soft")], [KEY], PASS, ()),
        ([], [KEY], PASS, ()),
    ],
)
def test_the_verdict(
    findings: list[Finding], before: list[tuple[str, str, str]], status: str, short: object
) -> None:
    judged = judge_node(findings, before)
    assert (judged.status, judged.short) == (status, short)
    assert bool(judged.failures) == (status != PASS)
    assert bool(judged.warnings) == any(one.owner and one.status == FAIL for one in findings)


def test_it_says_what_cannot_be_seen() -> None:
    judged = judge_node([find(UNKNOWN)], [KEY])
    assert judged.failures == ("kernel: fs.file-max fell short, and cannot be seen",)
