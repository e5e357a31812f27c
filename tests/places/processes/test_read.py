# SPDX-License-Identifier: GPL-3.0-or-later
"""What started a process, and whether it may set its own limits, is read from /proc and files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits.host.look import Process
from mlhost_limits.processes.read import (
    Login,
    can_set_limits,
    find_ancestors,
    find_main,
    find_terminal_server,
    read_login,
)

# Captured on Debian 12, systemd 252.
SESSION = """\
# This is private data. Do not parse.
UID=0
USER=root
ACTIVE=1
SCOPE=session-5.scope
REMOTE_HOST=10.0.2.2
SERVICE=sshd
LEADER=421
REALTIME=1795283202735278
MONOTONIC=455673198
"""


def test_a_session_is_what_logind_keeps_of_it(tmp_path: Path) -> None:
    (tmp_path / "5").write_text(SESSION)
    login = read_login("5", str(tmp_path))
    assert login == Login("5", "root", "sshd", 1795283202.735278)


@pytest.mark.parametrize("text", ["", "USER=a\nLEADER=1\n", "USER=a\nREALTIME=x\n"])
def test_half_a_session_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "5").write_text(text)
    assert read_login("5", str(tmp_path)) is None
    assert read_login("6", str(tmp_path)) is None


def test_a_fifo_beside_a_session_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "5.ref")
    assert read_login("5.ref", str(tmp_path)) is None


def make(pid: int, comm: str = "x", cgroup: str = "0::/a.service") -> Process:
    return Process(pid, comm, 0, cgroup, 1)


def test_the_ancestors_of_this_process_end_at_the_first() -> None:
    pids = [process.pid for process in find_ancestors(os.getpid())]
    assert pids[0] == os.getppid()
    assert len(pids) == len(set(pids))
    assert find_ancestors(2**30) == []


def test_the_main_process_is_the_last_of_the_same_cgroup() -> None:
    process, parent = make(9), make(8)
    assert find_main(process, [parent, make(1, cgroup="0::/init.scope")]) == parent
    assert find_main(process, [make(1, cgroup="0::/init.scope"), make(7)]) == process
    assert find_main(process, []) == process


def test_a_terminal_server_is_found_above_or_in_place() -> None:
    server = make(3, "tmux: server")
    assert find_terminal_server(make(9), [make(5), server]) == server
    assert find_terminal_server(make(3, "SCREEN"), []) == make(3, "SCREEN")
    assert find_terminal_server(make(9), [make(5)]) is None


@pytest.fixture
def child(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def start(child: list[subprocess.Popen[bytes]], words: list[str], cwd: Path) -> int:
    process = subprocess.Popen(words, cwd=cwd, stdout=subprocess.PIPE)
    child.append(process)
    assert process.stdout
    if "x.py" in words or "-c" in words:
        process.stdout.readline()
    return process.pid


def test_a_program_that_cannot_set_limits(
    child: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    assert not can_set_limits(start(child, ["/bin/sleep", "60"], tmp_path))


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("import time", False),
        ("import time, resource\nresource.RLIMIT_NOFILE", True),
    ],
)
def test_a_script_tells_for_its_interpreter(
    child: list[subprocess.Popen[bytes]],
    tmp_path: Path,
    text: str,
    may: bool,
) -> None:
    text += "\nprint(1, flush=True)\ntime.sleep(60)\n"
    (tmp_path / "x.py").write_text(text)
    (tmp_path / "empty").write_text("")
    pid = start(child, [sys.executable, "x.py", "-q", "empty"], tmp_path)
    assert can_set_limits(pid) is may
    inline = start(child, [sys.executable, "-c", text], tmp_path)
    assert can_set_limits(inline) is may


def test_a_process_that_cannot_be_read_may_do_anything() -> None:
    assert can_set_limits(2**30)
