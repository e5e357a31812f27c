# SPDX-License-Identifier: GPL-3.0-or-later
"""A child that does not even end when it is killed is not waited for."""

from __future__ import annotations

import os
import signal
import time

import pytest
from mlhost_limits.host import children
from mlhost_limits.host.children import run_in_children

from tests.children import read_children


@pytest.mark.slow
def test_a_child_that_cannot_be_killed_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals that have no effect stand for a process that waits for a dead disk."""
    spared: list[int] = []
    monkeypatch.setattr(children, "_kill", spared.append)
    monkeypatch.setattr(children, "_GRACE", 0.2)
    late, quick = run_in_children([lambda: time.sleep(600), lambda: 7], 2.0)
    assert (late.value, late.problem) == (None, "no answer within 2 s")
    assert (quick.value, quick.problem) == (7, "")
    os.kill(spared[0], signal.SIGKILL)
    os.waitpid(spared[0], 0)


def test_a_killed_child_is_reaped() -> None:
    before = read_children()
    run_in_children([lambda: time.sleep(60)], 0.1)
    assert read_children() <= before


def test_a_child_that_stops_once_it_has_answered_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be a user's process by then, whom that user can stop."""
    write = children.write_all

    def write_and_stop(descriptor: int, content: bytes) -> None:
        write(descriptor, content)
        os.kill(os.getpid(), signal.SIGSTOP)

    monkeypatch.setattr(children, "write_all", write_and_stop)
    before = read_children()
    assert children.run_in_children([lambda: 1], 60.0) == [children.Report(1)]
    assert read_children() <= before


def test_a_time_without_an_end_is_waited_for() -> None:
    """poll(2) takes no more than 2**31 milliseconds."""
    [report] = run_in_children([lambda: 7], float(10**12))
    assert (report.value, report.problem) == (7, "")
