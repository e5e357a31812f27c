# SPDX-License-Identifier: GPL-3.0-or-later
"""Who would kill a run before the kernel does is told, and what earlyoom keeps free is no room."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.training import runner_read as subject
from mlhost_limits.training.causes import Room
from mlhost_limits.training.runner_read import find_kept, find_killers

GIB = 2**30
CGROUP = "0::/user.slice/user-1000.slice/session-3.scope\n"
MOUNTS = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("/usr/bin/earlyoom", 6 * GIB),
        ("/usr/bin/earlyoom -r 3600", 6 * GIB),
        ("/usr/bin/earlyoom -m 5 -s 20", 3 * GIB),
        ("/usr/bin/earlyoom -m 5,2 --avoid x", 3 * GIB),
        ("/usr/bin/earlyoom -M 1048576", GIB),
        ("/usr/bin/earlyoom -M 1048576,524288 -m 50", GIB),
        ("/usr/bin/earlyoom --prefer (^|/)model-m9", 6 * GIB),
    ],
)
def test_what_earlyoom_keeps_free(command: str, kept: int) -> None:
    assert find_kept(command, 60 * GIB) == kept


def look(
    monkeypatch: pytest.MonkeyPatch,
    running: tuple[str, ...],
    swap: int = 0,
    events: str = "",
    watched: tuple[str, ...] = (),
) -> subject.Killers:
    def read(path: str) -> str:
        if path.endswith("memory.events") and events:
            assert path.startswith("/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope/")
            return events
        if path == "/proc/7/cmdline":
            return "/usr/bin/earlyoom\0-m\0" + "5\0"
        raise FileNotFoundError(path)

    memory = {"MemTotal": 60 * GIB, "MemAvailable": 40 * GIB, "SwapTotal": swap}
    monkeypatch.setattr(subject, "read_meminfo", lambda: memory)
    monkeypatch.setattr(subject, "read_unit_pids", lambda unit: [7] if unit in running else [])
    monkeypatch.setattr(subject, "show_oomd", lambda unit: (unit in watched, unit == "-.slice"))
    monkeypatch.setattr(subject, "read_kernel_text", read)
    return find_killers(CGROUP, MOUNTS)


def test_nobody_but_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(monkeypatch, ()) == subject.Killers()
    assert look(monkeypatch, (), GIB).notes == ("1.0 GiB of swap come first, and are slow",)


def test_earlyoom_takes_room_where_there_is_no_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "earlyoom kills the largest process when 3.0 GiB are left"
    room = Room("the host above earlyoom's bound", 37 * GIB, end=told)
    assert look(monkeypatch, ("earlyoom.service",)) == subject.Killers((told,), room)
    with_swap = look(monkeypatch, ("earlyoom.service",), GIB)
    assert with_swap.room is None
    assert "swap is nearly full" in with_swap.notes[0]


def test_systemd_oomd_kills_the_units_that_it_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = ("user-1000.slice",)
    found = look(monkeypatch, ("systemd-oomd.service",), watched=watched)
    assert found.notes == (
        "systemd-oomd kills user-1000.slice when its memory pressure stays high",
    )
    assert look(monkeypatch, (), watched=watched).notes == ()


@pytest.mark.parametrize(("events", "told"), [("oom 4\noom_kill 3\n", 1), ("oom_kill 0\n", 0)])
def test_who_was_killed_so_far_is_told(
    monkeypatch: pytest.MonkeyPatch, events: str, told: int
) -> None:
    notes = look(monkeypatch, (), events=events).notes
    assert len(notes) == told
    assert all("has killed 3 of /sys/fs/cgroup/user.slice" in note for note in notes)


def test_this_host_can_be_looked_at() -> None:
    cgroup, mounts = (Path(f"/proc/self/{name}").read_text() for name in ("cgroup", "mountinfo"))
    assert isinstance(find_killers(cgroup, mounts), subject.Killers)
