# SPDX-License-Identifier: GPL-3.0-or-later
"""A command that is watched does not notice: streams, signals, group, terminal, and how it ends."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]
MAIN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "from tests.conftest import load_library; load_library();"
    "from mlhost_limits.cli import main; sys.exit(main(sys.argv[1:]))"
)
COUNTING = """
import os, signal, sys, time
got = []
for one in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP):
    signal.signal(one, lambda number, frame: got.append(number))
print("ready", os.getpid(), os.getpgid(0), flush=True)
end = time.monotonic() + 1.2
while time.monotonic() < end:
    time.sleep(0.05)
print(got, flush=True)
"""


def words(*command: str) -> list[str]:
    return [sys.executable, "-c", MAIN, str(TOP), "watch", "--", *command]


def run(*command: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words(*command), capture_output=True, text=True, check=False, timeout=60, input=typed
    )


@pytest.mark.parametrize("status", [0, 1, 2, 127, 137, 255])
def test_the_status_is_the_commands(status: int) -> None:
    assert run("sh", "-c", f"exit {status}").returncode == status


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGPIPE]
)
def test_it_dies_of_the_signal_that_the_command_died_of(number: signal.Signals) -> None:
    assert run("sh", "-c", f"kill -{number} $$").returncode == -number


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("nonesuch-command", 127, "nonesuch-command: No such file or directory"),
        ("/etc/passwd", 126, "/etc/passwd: Permission denied"),
    ],
)
def test_what_cannot_be_run_ends_as_in_a_shell(command: str, status: int, told: str) -> None:
    done = run(command)
    assert (done.returncode, done.stderr) == (status, f"mlhost-limits: {told}\n")


def test_streams_are_the_commands_alone() -> None:
    done = run("sh", "-c", "cat; echo err >&2", typed="in")
    assert (done.stdout, done.stderr) == ("in", "err\n")


def test_the_status_stays_when_nobody_reads_what_is_told() -> None:
    with subprocess.Popen(words("sh", "-c", "sleep 0.5; exit 3"), stderr=subprocess.PIPE) as child:
        assert child.stderr
        child.stderr.close()
    assert child.returncode == 3


def test_who_reads_sees_the_end_when_the_command_closes_its_output() -> None:
    begin = time.monotonic()
    with subprocess.Popen(
        words("sh", "-c", "echo first; exec >&-; sleep 3"), stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        assert child.stdout.read() == "first\n"
        assert time.monotonic() - begin < 2.5


def test_it_has_no_descriptor_more_and_no_signal_less() -> None:
    program = (
        "import os, re; print(sorted(os.listdir('/proc/self/fd'))[:-1]);"
        "print(re.findall('Sig(?:Ign|Blk|Cgt):.*', open('/proc/self/status').read()))"
    )
    # A shell's child, whose signals this very interpreter has not touched.
    command = ["sh", "-c", "ls /proc/self/fd; grep -E 'Sig(Ign|Blk)' /proc/self/status"]
    bare = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert run(*command).stdout == bare.stdout, program


def start(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words(*command), stdout=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=_ignore_nothing,
    )  # fmt: skip


def _ignore_nothing() -> None:
    """Heed what whoever started these tests ignores, as nohup does."""
    for one in (signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)


def wait_for(child: subprocess.Popen[str]) -> Sequence[int]:
    assert child.stdout
    return [int(word) for word in child.stdout.readline().split()[1:]]


def test_a_command_is_in_the_group_that_it_would_be_in() -> None:
    with start(sys.executable, "-c", COUNTING) as child:
        _pid, group = wait_for(child)
        assert group == child.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("to_group", [True, False])
def test_a_signal_comes_once(number: signal.Signals, to_group: bool) -> None:
    with start(sys.executable, "-c", COUNTING) as child:
        wait_for(child)
        (os.killpg if to_group else os.kill)(child.pid, number)
        assert child.stdout
        assert child.stdout.readline() == f"[{int(number)}]\n"
    assert child.returncode == 0


def test_a_signal_to_the_group_comes_once_however_late_its_witness_is() -> None:
    with start(sys.executable, "-c", COUNTING) as child:
        wait_for(child)
        found = subprocess.run(
            ["pgrep", "-P", str(child.pid)], capture_output=True, text=True, check=True
        )
        witness = max(map(int, found.stdout.split()))
        os.kill(witness, signal.SIGSTOP)  # As one that does not come to run.
        os.killpg(child.pid, signal.SIGUSR1)
        time.sleep(0.3)
        os.kill(witness, signal.SIGCONT)
        assert child.stdout
        assert child.stdout.readline() == f"[{int(signal.SIGUSR1)}]\n"
    assert child.returncode == 0


def test_what_was_ignored_stays_ignored() -> None:
    ignored = "trap '' HUP; exec \"$@\""
    done = subprocess.run(
        ["sh", "-c", ignored, "x", *words("sh", "-c", "kill -HUP $$; echo lives")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout == "lives\n"


def test_a_watcher_that_is_killed_leaves_the_run_alone_and_nothing_behind() -> None:
    with start(sys.executable, "-c", COUNTING) as child:
        wait_for(child)
        os.kill(child.pid, signal.SIGKILL)
        assert child.stdout
        assert child.stdout.read() == "[]\n"  # And nobody else holds the pipe.
    end = time.monotonic() + 10
    while subprocess.run(["pgrep", "-g", str(child.pid)], capture_output=True, check=False).stdout:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.root
def test_as_process_1_it_waits_for_whoever_is_left_to_it() -> None:
    program = "(sleep 0.3 &); sleep 1; grep -c '^State:.Z' /proc/[0-9]*/status | grep -c :1; exit 4"
    unshared = ["unshare", "--pid", "--fork", "--mount-proc", *words("sh", "-c", program)]
    done = subprocess.run(unshared, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("0\n", 4)


def test_at_a_terminal_ctrl_c_and_ctrl_z_are_the_groups() -> None:
    pid, handle = pty.fork()
    if not pid:
        os.execv(sys.executable, words(sys.executable, "-c", COUNTING))
    assert b"ready" in _read_until(handle, b"\n")
    os.write(handle, b"\x03")
    told = _read_until(handle, b"]\r\n")
    assert b"[2]" in told
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _read_until(handle: int, mark: bytes) -> bytes:
    told, end = b"", time.monotonic() + 30
    while mark not in told and time.monotonic() < end:
        if select.select([handle], [], [], 1.0)[0]:
            told += os.read(handle, 4096)
    return told
