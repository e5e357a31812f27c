# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers are found by the monitors that watch them, and only those of the engines asked for."""

from __future__ import annotations

import pytest
from mlhost_limits.containers import read
from mlhost_limits.containers.read import find_monitor, find_running
from mlhost_limits.host.look import Process

ID = 64 * "a"
WORDS = ["/usr/bin/conmon", "-c", ID, "-n", "web", "-b", "/run/bundle"]
MONITOR = Process(7, "conmon", 0, "0::/", 1)
FIRST = Process(8, "sleep", 0, f"0::/machine.slice/libpod-{ID}.scope", 2)
ENTERED = FIRST._replace(pid=9, start=3)


@pytest.fixture(autouse=True)
def _host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host on which one monitor has two children."""
    monkeypatch.setattr(read, "is_daemon", lambda *_words: True)
    monkeypatch.setattr(read, "read_parent", lambda pid, _proc: 7 if pid > 7 else 1)
    monkeypatch.setattr(read, "read_words", lambda pid, *_proc: WORDS if pid == 7 else [])


def test_the_first_process_of_a_container_stands_for_it() -> None:
    (found,) = find_running([ENTERED, FIRST, MONITOR], ("podman",))
    assert (found.container.name, found.process, found.owner) == ("podman/web", FIRST, 0)


def test_the_monitor_of_a_user_hides_no_container_of_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may say that it watches the same one, and have begun before."""
    theirs = MONITOR._replace(pid=17, uid=1001)
    inside = FIRST._replace(pid=18, uid=1001, start=1)
    monkeypatch.setattr(read, "read_parent", lambda pid, _proc: {8: 7, 18: 17}.get(pid, 1))
    monkeypatch.setattr(read, "read_words", lambda pid, *_proc: WORDS if pid in (7, 17) else [])
    found = find_running([theirs, inside, MONITOR, FIRST], ("podman",))
    assert [(one.process, one.owner) for one in found] == [(inside, 1001), (FIRST, 0)]


def test_a_container_of_another_engine_is_left_out() -> None:
    assert find_running([FIRST, MONITOR], ("containerd", "cri-o")) == []


def test_what_a_monitor_says_of_its_container() -> None:
    told = find_monitor(FIRST.pid)
    assert told
    assert (told.id, told.bundle) == (ID, "/run/bundle")
    assert find_monitor(MONITOR.pid) is None
