# SPDX-License-Identifier: GPL-3.0-or-later
"""What started a process, and whether it may set its own limits, is read from /proc and files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits.host.look import Process
from mlhost_limits.processes.read import (
    Login,
    can_set_limits,
    find_ancestors,
    find_main,
    find_starters,
    find_terminal_server,
    read_login,
)
from mlhost_limits.systemd.unit_file import Setting

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


def exec_start(value: str, key: str = "ExecStart", section: str = "Service") -> Setting:
    return Setting(section, key, value, "/etc/systemd/system/x.service", 4)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("/bin/sh -c 'ulimit -n 1024; exec x'", [("nofile", 1024)]),
        ('/bin/sh -c "ulimit -l 64 && exec x"', [("memlock", 65536)]),
        ("/usr/bin/prlimit --nofile=1024:2048 --nproc=5 x", [("nofile", 1024), ("nproc", 5)]),
        ("/usr/bin/x --nofile=5", []),
        ("/usr/bin/x 'unclosed", []),
    ],
)
def test_a_command_line_may_set_limits(value: str, found: list[tuple[str, int]]) -> None:
    lines = list(find_starters([exec_start(value)]))
    assert [(line.item, line.at.value) for line in lines] == found
    assert all(line.at.text == f"ExecStart={value}" and line.at.line == 4 for line in lines)


@pytest.mark.parametrize(
    "command",
    [
        "prlimit " * 60_000,
        "prlimit --a " * 60_000,
        f"/usr/bin/prlimit --nofile={'9' * 9000} /bin/x",
        f"/usr/bin/prlimit --nofile={'9' * 400_000} /bin/x",
    ],
)
def test_a_command_line_of_a_user_is_read_in_the_time_of_its_length(command: str) -> None:
    begun = time.process_time()
    assert list(find_starters([exec_start(command)])) == []
    assert time.process_time() - begun < 3


def test_what_prlimit_starts_has_options_of_its_own() -> None:
    line = "/usr/bin/prlimit --nofile=5:6 -n 7 --memlock=8 /srv/run --data=9 --nproc=10"
    found = [(one.item, one.at.value) for one in find_starters([exec_start(line)])]
    assert found == [("nofile", 5), ("memlock", 8)]


def test_a_script_and_what_it_reads_may_set_limits(tmp_path: Path) -> None:
    script = tmp_path / "start"
    script.write_text("#!/bin/sh\n. /etc/default/no-such-file\nulimit -n 9\nexec x\n")
    (line,) = find_starters([exec_start(f"-/bin/sh {script}")])
    assert (line.item, line.at.path, line.at.line) == ("nofile", str(script), 3)


def test_other_lines_start_nothing() -> None:
    stop = exec_start("/bin/sh -c 'ulimit -n 5'", "ExecStop")
    other = exec_start("/bin/sh -c 'ulimit -n 5'", section="X")
    assert list(find_starters([stop, other])) == []
