# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever asks for a task lives on, whatever becomes of it, and learns why it returned nothing."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.host import guarded
from mlhost_limits.host.guarded import describe_trouble, run_guarded


def test_what_a_task_returns_comes_back_however_long_it_is() -> None:
    text = "x" * 2**20
    assert run_guarded(lambda: [text, {"a": None}], 60) == ([text, {"a": None}], "")
    assert run_guarded(lambda: None, 60) == (None, "")


def test_a_task_that_json_cannot_carry_is_a_trouble() -> None:
    assert run_guarded(object, 60)[1].startswith("TypeError")


def test_a_child_that_is_left_behind_is_not_waited_for(tmp_path: Path) -> None:
    left = tmp_path / "left"

    def leave() -> None:
        pid = os.fork()
        if pid:
            left.write_text(str(pid))
            os._exit(3)
        time.sleep(600)

    assert run_guarded(leave, 600) == (None, "it ended early")
    os.kill(int(left.read_text()), signal.SIGKILL)


@pytest.mark.slow
def test_a_task_that_is_late_may_take_back_what_it_began(tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def work() -> None:
        begun.touch()
        try:
            while True:
                try:
                    signal.pause()
                except OSError:
                    continue
        finally:
            begun.unlink()

    assert run_guarded(work, 1.0) == (None, "it did not end within 1 s")
    assert not begun.exists()


def test_a_task_that_will_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "_GRACE", 0.1)

    def work() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()

    assert run_guarded(work, 0.3) == (None, "it did not end within 0.3 s")


def test_without_room_for_a_process_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fail)
    problem = "no process can be started (Resource temporarily unavailable)"
    assert run_guarded(lambda: 1, 60) == (None, problem)
    monkeypatch.setattr(os, "pipe", fail)
    assert "Resource temporarily" in run_guarded(lambda: 1, 60)[1]


@pytest.mark.parametrize(
    ("exc", "told"),
    [
        (PolicyError(["a: x", "b: y"]), "a: x; b: y"),
        (OSError("gone\n"), "gone?"),
        (KeyError("k"), "KeyError 'k'"),
        (MemoryError(), "MemoryError"),
        (ValueError("x" * 600), "x" * 500 + "…"),
    ],
)
def test_a_trouble_is_one_line(exc: BaseException, told: str) -> None:
    assert describe_trouble(exc) == told
