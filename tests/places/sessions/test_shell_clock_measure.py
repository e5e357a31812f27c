# SPDX-License-Identifier: GPL-3.0-or-later
"""Users share the time of a look, and who stalls takes it from nobody else."""

from __future__ import annotations

import os
import pwd
import signal

import pytest
from mlhost_limits.host.as_user import Errand
from mlhost_limits.sessions import shell_clock_measure
from mlhost_limits.sessions.shell_clock_measure import ShellClock

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming a user needs root")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_clock_measure, "TIME_LIMIT", 3.0)


def find_user(number: int) -> pwd.struct_passwd:
    return pwd.struct_passwd(["", "x", 54321 + number, 54321, "", "/", "/bin/sh"])


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def run(user: int, script: str) -> Errand:
    return Errand(find_user(user), words=["/bin/sh", "-c", script])


def test_who_stalls_in_every_part_takes_no_time_from_others() -> None:
    """There are more errands than places, and one user's stall again and again."""
    stalling = [Errand(find_user(0), stop), *(run(0, "exec >&- 2>&-; sleep 9"),) * 20]
    others = [Errand(find_user(user), lambda user=user: user) for user in range(1, 21)]
    clock = ShellClock(60.0)
    reports = clock.ask([*stalling, *others])
    assert all(report and report.late for report in reports[: len(stalling)])
    assert [report and report.value for report in reports[len(stalling) :]] == [*range(1, 21)]
    assert clock.used[54321] >= 3.0
    assert [one and one.value for one in clock.ask(others)] == [*range(1, 21)]


def test_who_is_nearly_late_again_and_again_has_one_time() -> None:
    clock = ShellClock()
    told = [clock.ask([run(0, "sleep 0.9; echo done")])[0] for _again in range(5)]
    late = [bool(report and report.late) for report in told]
    assert (late[0], late[-1], late) == (False, True, sorted(late))


def test_many_who_stall_together_make_nobody_else_late() -> None:
    """Whom they leave no time is not asked, which is not a failure and no pass."""
    stalling = [run(user, "sleep 9") for user in range(40)]
    reports = ShellClock(1.5).ask([*stalling, run(50, "echo done")])
    assert reports[-1] is None
    assert [report for report in reports if report and not report.late] == []


def test_what_ended_an_errand_is_said_as_it_was() -> None:
    much, slow = ShellClock().ask([run(0, "yes"), run(1, "sleep 9")])
    assert much is not None
    assert slow is not None
    assert "more than 1048576 bytes" in much.problem
    assert slow.problem == "no answer within 3 s"
