# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user's shell says adds a shortfall of the user's own, and takes none of root's away."""

from __future__ import annotations

import pytest
from mlhost_limits.core.finding import Finding
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.sessions.check import Told, judge_session

PLACE = "session:alice@sshd"
WANTED = {"nofile": Limit(100, 200, 300)}
SILENT = Told(None, "", "the start files of alice's shell give no session: no answer within 10 s")


def told(soft: int, hard: int, how: str = "PAM") -> Told:
    return Told({"nofile": Rlimit(soft, hard)}, how)


def judge(
    given: Told, shell: Told | None, owner: str = "alice", named: bool = True
) -> list[Finding]:
    return list(judge_session(PLACE, WANTED, given, shell, owner, named))


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("given", "shell", "soft", "hard"),
    [
        (told(100, 200), None, ("pass", 100, ""), ("pass", 200, "")),
        (told(100, 200), told(100, 200), ("pass", 100, ""), ("pass", 200, "")),
        (told(100, 200), told(50, 200), ("fail", 50, "alice"), ("pass", 200, "")),
        (told(100, 200), told(50, 60), ("fail", 50, "alice"), ("fail", 60, "alice")),
        (told(90, 200), told(50, 200), ("fail", 90, ""), ("pass", 200, "")),
        (told(90, 200), told(200, 200), ("fail", 90, ""), ("pass", 200, "")),
        (told(90, 150), told(UNLIMITED, UNLIMITED), ("fail", 90, ""), ("fail", 150, "")),
        (Told(None, "", "closed"), told(50, 60), ("unknown", None, ""), ("unknown", None, "")),
    ],
    ids=["unasked", "alike", "lowered", "both", "root too", "forged", "forged hard", "closed"],
)
def test_root_s_part_is_judged_by_itself(
    given: Told, shell: Told | None, soft: object, hard: object, named: bool
) -> None:
    found = judge(given, shell, named=named)
    assert [(one.status, one.observation.value, one.owner) for one in found] == [soft, hard]


@pytest.mark.parametrize("given", [told(100, 200), told(10, 10)], ids=["fine", "short"])
@pytest.mark.parametrize(
    ("named", "status", "value"), [(True, "fail", "none"), (False, "unknown", None)]
)
def test_a_shell_that_gives_nothing_hides_nothing(
    given: Told, named: bool, status: str, value: str | None
) -> None:
    *found, last = judge(given, SILENT, named=named)
    assert found == judge(given, None)
    assert (last.status, last.observation.value, last.owner) == (status, value, "alice")
    assert last.requirement.describe() == "a shell that starts"
    assert SILENT.reason in (last.observation.reason, *(cause.text for cause in last.causes))


def test_root_s_own_shell_is_root_s_doing() -> None:
    soft, _hard = judge(told(100, 200), told(50, 200), owner="")
    assert (soft.status, soft.owner) == ("fail", "")
    last = judge(told(100, 200), SILENT, owner="")[-1]
    assert (last.status, last.owner) == ("fail", "")
    assert "let root find" in last.causes[0].remedy.text
