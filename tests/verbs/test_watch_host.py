# SPDX-License-Identifier: GPL-3.0-or-later
"""What dies on a host is judged by what was seen of it, and kept where somebody may ask for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from mlhost_limits import watch_host
from mlhost_limits.cli import main
from mlhost_limits.watch import ends_read, host_sampler_read
from mlhost_limits.watch.ends_read import Ended
from mlhost_limits.watch.events_read import Heard
from mlhost_limits.watch.everyone_read import is_between
from mlhost_limits.watch.host_sampler_read import Death
from mlhost_limits.watch.tree_read import Member
from mlhost_limits.watch.trends import End, Level

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the kernel tells root alone")

HOLDS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
held = []
for line in sys.stdin:
    while len(held) < int(line):
        held.append(open("/dev/null"))
    print("ready", flush=True)
"""


class Listener:
    """Tells of the ends that a test gives it."""

    def __init__(self) -> None:
        self.ended: list[Ended] = []

    def read(self) -> Iterator[Ended]:
        ended, self.ended = self.ended, []
        yield from ended


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> watch_host._Box:
    monkeypatch.setattr(host_sampler_read, "Ends", Listener)
    monkeypatch.setattr(watch_host, "keep", lambda *report: kept(box).append(report[0]))
    monkeypatch.setattr(watch_host, "_say", lambda line: said(box).append(line))
    monkeypatch.setattr(watch_host, "make_folder", lambda _folder: None)
    box = watch_host._Box(str(tmp_path / "box.prom"))
    box.kept, box.said = [], []
    return box


def kept(box: Any) -> list[dict[str, Any]]:
    return box.kept  # type: ignore[no-any-return]


def said(box: Any) -> list[str]:
    return box.said  # type: ignore[no-any-return]


def look(box: watch_host._Box) -> None:
    box._sampler._look(Heard())
    box._sampler.looks += 1


@contextmanager
def holding() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        yield child
        child.kill()


def hold(child: subprocess.Popen[str], number: int) -> None:
    assert child.stdin
    assert child.stdout
    child.stdin.write(f"{number}\n")
    child.stdin.flush()
    child.stdout.readline()


def end(box: watch_host._Box, pid: int, status: int, seconds: float = 4.0) -> None:
    """Let a process have ended so long ago that its run is over."""
    box._sampler._listener.ended.append(Ended(time.monotonic() - seconds, pid, status))
    look(box)


def follow(box: watch_host._Box, child: subprocess.Popen[str], most: int) -> None:
    """Look while a process takes more and more; on a host of many, until its turn comes."""
    hold(child, 40)
    for _turn in range(400):
        look(box)
        if any(one.level.pid == child.pid for one in box._sampler.history.near):
            break
    for number in range(42, most + 1, 2):
        hold(child, number)
        time.sleep(0.01)
        look(box)


def test_who_reached_a_limit_is_told_before_and_kept_after(
    box: watch_host._Box, tmp_path: Path
) -> None:
    with holding() as child:
        follow(box, child, 96)
        assert any(f"process {child.pid} (" in line and "full in" in line for line in said(box))
        end(box, child.pid, 256, 0.0)
        assert kept(box) == []  # Others of the run may follow.
        time.sleep(0.1)
        box._sampler._dying = {
            uid: [one._replace(end=one.end._replace(at=one.end.at - 4)) for one in deaths]
            for uid, deaths in box._sampler._dying.items()
        }
        look(box)
    (report,) = kept(box)
    assert (report["reason"], report["is_limit"], report["sure"]) == (
        "nofile",
        True,
        "shown by the host",
    )
    assert report["end"] | {"at": ""} == {
        "at": "",
        "pid": child.pid,
        "status": 1,
        "signal": None,
        "name": report["name"],
    }
    assert any("ended; process" in line for line in said(box))
    box._written = -1000.0
    look(box)
    text = (tmp_path / "box.prom").read_text()
    assert 'mlhost_limits_ended_at_limit{reason="nofile"} 1' in text
    assert "mlhost_limits_black_box_timestamp_seconds " in text


def test_what_fails_and_was_near_no_limit_is_no_report(box: watch_host._Box) -> None:
    """Shells start programs that fail all day long."""
    with holding() as child:
        hold(child, 3)
        look(box)
        end(box, child.pid, 256)
    assert kept(box) == []


@pytest.mark.parametrize(("status", "is_kept"), [(9, True), (11, True), (15, False), (2, False)])
def test_who_was_killed_or_crashed_is_kept_as_no_limit(
    box: watch_host._Box, status: int, is_kept: bool
) -> None:
    with holding() as child:
        hold(child, 3)
        look(box)
        end(box, child.pid, status)
    assert [one["is_limit"] for one in kept(box)] == [False] * is_kept


def test_nobody_fills_the_journal(box: watch_host._Box) -> None:
    """However many processes a user brings near a limit, or lets die."""
    assert [box._may_say("session:mallory", f"{one}") for one in range(50)].count(True) == 4
    assert box._may_say("session:alice", "nofile of process 7 (python3)")
    assert not box._may_say("session:alice", "nofile of process 7 (python3)")
    assert sum(box._may_say(f"session:{one}", "an end") for one in range(200)) == 35


def death(pid: int, parent: int, group: int, cgroup: str = "0::/a") -> Death:
    member = Member(pid, "python3", 0)
    member.parent, member.group, member.cgroup = parent, group, cgroup
    return Death(End(float(pid), pid, "python3", (), 256), member, 0.0, 1, 0)


@pytest.mark.parametrize(
    ("deaths", "runs"),
    [
        ([death(3, 2, 2), death(2, 1, 2)], [{2, 3}]),
        ([death(3, 2, 3), death(2, 1, 2)], [{2, 3}]),
        ([death(3, 1, 3), death(2, 1, 2)], [{3}, {2}]),
        ([death(3, 1, 3), death(2, 3, 2, "0::/b")], [{3}, {2}]),
        ([death(5, 4, 5), death(6, 4, 6), death(4, 1, 4), death(9, 1, 9)], [{4, 5, 6}, {9}]),
    ],
)
def test_a_run_is_a_group_of_processes_or_one_and_its_children(
    deaths: list[Death], runs: list[set[int]]
) -> None:
    """What a user runs beside it in the same session, or another by the same daemon, is another."""
    assert [{one.member.pid for one in run} for run in host_sampler_read.part(deaths)] == runs


def test_a_name_writes_no_second_line(capfd: pytest.CaptureFixture[str]) -> None:
    watch_host._say("process 7 (\n<0>all is lost\x1b[2J) ended")
    (line,) = capfd.readouterr().err.splitlines()
    assert "\x1b" not in line


def test_a_number_that_was_given_out_again_is_nobodys_death(
    box: watch_host._Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holding() as child:
        hold(child, 3)
        look(box)
        monkeypatch.setattr(box._sampler.tree, "_last", child.pid - 1)
        end(box, child.pid, 9)
    assert kept(box) == []


@pytest.mark.parametrize(
    ("first", "last", "pids"),
    [(10, 13, {11, 12, 13}), (10, 10, set()), (30, 2, {0, 1, 2, 31}), (30, 31, {31})],
)
def test_which_numbers_were_given_out(first: int, last: int, pids: set[int]) -> None:
    assert {pid for pid in range(32) if is_between(first, pid, last)} == pids


def test_where_no_task_is_left_it_goes_on(
    box: watch_host._Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(host_sampler_read.Thread, "start", refuse)
    assert box._sampler._count_mappings(Member(os.getpid(), "python3", 0)) is None
    look(box)
    assert os.getpid() in box._sampler.tree.members


def test_a_process_that_keeps_a_reader_waiting_keeps_nobody_else_from_being_seen(
    box: watch_host._Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own file system answers when it likes, and so does what has it mapped."""
    asked, go_on = [], Event()
    count = host_sampler_read.read_mappings

    def stall(member: Member) -> Level | None:
        asked.append(member.uid)
        return count(member) if member.uid else go_on.wait() and None

    monkeypatch.setattr(host_sampler_read, "_PATIENCE", 0.1)
    monkeypatch.setattr(host_sampler_read, "read_mappings", stall)
    sampler = box._sampler
    slow, other = Member(os.getpid(), "slow", 0), Member(os.getpid(), "other", 0)
    other.uid = 1000
    for _again in range(5):
        assert sampler._count_mappings(slow) is None
        assert sampler._count_mappings(other)
    assert asked.count(0) == 1
    go_on.set()


def test_a_thread_of_the_kernel_is_no_process(box: watch_host._Box) -> None:
    look(box)
    members = box._sampler.tree.members
    assert os.getpid() in members
    assert 2 not in members or "kthreadd" not in members[2].comm


def test_only_root_of_the_host_can(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_socket: object, _mask: int) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(ends_read, "_listen", refuse)
    with pytest.raises(OSError, match="watch --host: the kernel tells root of the host alone"):
        watch_host.watch_host("")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PermissionError, match="only root hears"):
        watch_host.watch_host("")


def test_who_stops_reading_stops_nothing() -> None:
    """A pipe that is full."""
    program = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from tests.conftest import load_library\nload_library()\n"
        "from mlhost_limits.watch_host import _say\n"
        "reads, writes = os.pipe()\n"
        "os.dup2(writes, 2)\n"
        "os.set_blocking(writes, False)\n"
        "try:\n    while True: os.write(writes, b'x' * 4096)\n"
        "except BlockingIOError: os.set_blocking(2, True)\n"
        "_say('a line')\nprint('goes on')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=20
    )
    assert done.stdout == "goes on\n"


def test_a_report_that_cannot_be_kept_is_said(
    box: watch_host._Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_report: object) -> None:
        raise OSError("/var/lib/mlhost-limits/ends: No space left on device")

    monkeypatch.setattr(watch_host, "keep", refuse)
    with holding() as child:
        hold(child, 3)
        look(box)
        end(box, child.pid, 9)
    assert [line for line in said(box) if "No space left" in line]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["watch", "--host", "--", "true"], "--host watches all that runs: it takes no COMMAND"),
        (["watch", "--host", "--report", "x"], "it takes no --report"),
        (["watch", "--metrics", "x", "--", "true"], "--metrics is for --host"),
        (["why", "--last", "--unit", "a"], "--last is the last run of all: give it, or --unit"),
        (["why", "--last", "--pid", "0", "some.log"], "give it, or --pid, FILE"),
    ],
)
def test_what_excludes_one_another_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(words) == 2
    assert told in " ".join(capsys.readouterr().err.split())
