# SPDX-License-Identifier: GPL-3.0-or-later
"""Open sessions are found by the cgroups that logind made, with the limits of their first process."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from mlhost_limits.core.values import Rlimit
from mlhost_limits.sessions import provision as leftovers
from mlhost_limits.sessions.provision import find_open_sessions

LIMITS = Path("/proc/self/limits").read_text("ascii")
NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(
        leftovers, "_ROOTS", (str(tmp_path / "cgroup"), str(tmp_path / "cgroup/systemd"))
    )
    return tmp_path


def add(host: Path, unit: str, pids: str, uid: int = NOBODY.pw_uid, root: str = "cgroup") -> None:
    folder = host / root / "user.slice" / f"user-{uid}.slice" / unit
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text(pids)
    for pid in pids.split():
        (host / "proc" / pid).mkdir(parents=True, exist_ok=True)
        (host / "proc" / pid / "limits").write_text(
            LIMITS.replace("Max open files", "Max open files")
        )


def found(host: Path) -> list[tuple[str, str, int]]:
    return [session[:3] for session in find_open_sessions(str(host / "proc"))]


@pytest.mark.parametrize("root", ["cgroup", "cgroup/systemd"])
def test_sessions_and_managers_are_found(host: Path, root: str) -> None:
    add(host, "session-3.scope", "31\n7\n", root=root)
    add(host, f"user@{NOBODY.pw_uid}.service/init.scope", "9\n", root=root)
    add(host, f"user@{NOBODY.pw_uid}.service/app.slice", "10\n", root=root)
    manager = f"user@{NOBODY.pw_uid}.service"
    assert found(host) == [("session-3.scope", "nobody", 7), (manager, "nobody", 9)]


def test_a_session_shows_the_limits_of_its_first_process(host: Path) -> None:
    add(host, "session-3.scope", "31\n7\n")
    row = "Max open files            5                    6                    files\n"
    rows = [
        line for line in LIMITS.splitlines(keepends=True) if not line.startswith("Max open files")
    ]
    (host / "proc/7/limits").write_text("".join([*rows, row]))
    session = next(iter(find_open_sessions(str(host / "proc"))))
    assert session.limits["nofile"] == Rlimit(5, 6)


def test_a_user_without_a_name_is_named_by_number(host: Path) -> None:
    add(host, "session-3.scope", "7\n", uid=3999999999)
    assert found(host) == [("session-3.scope", "3999999999", 7)]


@pytest.mark.parametrize("pids", ["", f"{os.getpid()}\n"], ids=["empty", "our own"])
def test_what_is_no_open_session_is_left_out(host: Path, pids: str) -> None:
    add(host, "session-3.scope", pids)
    assert found(host) == []


@pytest.mark.parametrize("text", [None, "", "garbage"])
def test_a_session_that_ends_meanwhile_is_left_out(host: Path, text: str | None) -> None:
    add(host, "session-3.scope", "7\n")
    limits = host / "proc/7/limits"
    limits.unlink() if text is None else limits.write_text(text)
    assert found(host) == []
