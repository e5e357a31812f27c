# SPDX-License-Identifier: GPL-3.0-or-later
"""A shell is started where its startup files set a limit, and tells what it makes of it."""

from __future__ import annotations

import os
import pwd
import time
from pathlib import Path

import pytest
from mlhost_limits.probe.process import find_processes, read_limits
from mlhost_limits.probe.session import SessionResult
from mlhost_limits.probe.shell_limits import measure_shells

USER = "root"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming a user needs root")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give root another home, and bash."""
    entry = list(pwd.getpwnam(USER))
    entry[5:7] = [str(tmp_path), "/bin/bash"]
    monkeypatch.setattr(pwd, "getpwnam", lambda _user: pwd.struct_passwd(entry))
    return tmp_path


def open_session(service: str = "sshd") -> SessionResult:
    return SessionResult(service, USER, read_limits("self"), "libpam session", opens=True)


def test_a_shell_that_sets_nothing_is_not_started(home: Path) -> None:
    (home / ".bashrc").write_text(f"touch {home}/started\nulimit -c 0\n")
    assert measure_shells([open_session()], ["nofile"]) == {}
    assert not (home / "started").exists()


@pytest.mark.parametrize(
    ("file", "service", "seen"),
    [
        (".bashrc", "sshd", 500),
        (".profile", "sshd", 500),
        (".profile", "login", 500),
        (".bashrc", "su", 500),
        (".profile", "su", 0),
        (".bashrc", "login", 0),
        (".bashrc", "cron", None),
    ],
)
def test_what_the_shell_makes_of_it(home: Path, file: str, service: str, seen: int | None) -> None:
    (home / file).write_text("echo hello\nsleep 61.5 &\n. ~/more\n")
    (home / "more").write_text("ulimit -Sn 500\n")
    session = open_session(service)
    found = measure_shells([session], ["nofile"])
    if seen is None:
        assert found == {}
        return
    result = found[service, USER]
    assert session.limits
    assert result.limits
    assert result.limits["nofile"].soft == (seen or session.limits["nofile"].soft)
    assert [line.at.place for line in result.lines] == [f"{home}/more:1"]
    assert "shell of root" in result.how
    assert has_ended("61.5")


def has_ended(word: str) -> bool:
    """Wait until no process has this argument; a signal takes its time."""
    for _attempt in range(100):
        if not any(word in read_arguments(process.pid) for process in find_processes()):
            return True
        time.sleep(0.02)
    return False


def read_arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def test_a_shell_that_does_not_start_tells_nothing(home: Path) -> None:
    (home / ".bashrc").write_text("ulimit -n 500\nexit 3\n")
    result = measure_shells([open_session("su")], ["nofile"])["su", USER]
    assert result.limits is None
    assert result.reason == "the shell of root, which sets limits, told nothing: it ended early"
