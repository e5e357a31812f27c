# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of a run are found, what they take is counted as the kernel counts, ends are told."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.watch import tree_read
from mlhost_limits.watch.events_read import Events
from mlhost_limits.watch.everyone_read import Everyone
from mlhost_limits.watch.sampler_read import Sampler
from mlhost_limits.watch.tree_read import (
    Groups,
    Member,
    Tree,
    read_mappings,
    read_shared_memory,
    read_stat,
    read_users,
)
from mlhost_limits.watch.trends import Trend

HOLDS = """
import mmap, resource, sys, threading, time
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
held = [open("/etc/passwd") for number in range(100)]
maps = [mmap.mmap(-1, 4096) for number in range(500)]
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def child(program: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdin
        assert started.stdout
        started.stdout.readline()
        yield started
        started.stdin.close()


def test_what_a_process_takes_is_what_it_holds() -> None:
    with child(HOLDS) as started:
        tree = Tree(started.pid)
        (member,), _gone = tree.find()
        levels = {one.item: one for one in tree.read_levels(member)}
        assert levels["nofile"][1:3] == (103, 200)
        assert levels["as"].limit == 2**32
        assert 2**20 < levels["as"].used < 2**32
        mapped = read_mappings(member)
        assert mapped
        assert 500 < mapped.used < 2000
        assert mapped.limit == int(Path("/proc/sys/vm/max_map_count").read_text())


def test_what_descends_stays_of_the_run_when_its_parent_ends() -> None:
    program = (
        "import os, sys, time\n"
        "if not os.fork():\n"
        "    if not os.fork():\n"
        "        time.sleep(60)\n"
        "    time.sleep(0.6)\n"
        "    os._exit(0)\n"
        "print('ready', flush=True)\n"
        "os.wait(); time.sleep(60)\n"
    )
    with child(program) as started:
        tree = Tree(started.pid)
        time.sleep(0.2)
        assert len(tree.find()[0]) == 3
        time.sleep(0.8)
        new, gone = tree.find()
        assert (len(new), len(gone), len(tree.members)) == (0, 1, 2)
        for pid in tree.members:
            os.kill(pid, 9)


def test_others_are_no_part_of_it() -> None:
    tree = Tree(os.getpid())
    tree.find()
    assert os.getppid() not in tree.members


def test_of_a_process_that_ends_the_last_cgroup_counts() -> None:
    """The kernel tells none of what has ended and waits to be seen."""
    pid = os.fork()
    if not pid:
        time.sleep(0.3)
        os._exit(0)
    tree = Tree(pid)
    (member,), _gone = tree.find()
    before = member.cgroup
    time.sleep(0.6)
    with pytest.raises(ProcessLookupError):
        tree.refresh(member)
    assert member.cgroup == before
    assert list(tree.read_levels(member)) == []
    os.waitpid(pid, 0)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Python 3.9 and later")
@pytest.mark.parametrize("is_waited_for", [True, False])
@pytest.mark.parametrize(
    ("code", "status"), [("os._exit(7)", 7 << 8), ("os.kill(os.getpid(), 9)", 9)]
)
def test_an_end_is_told_with_its_status(code: str, status: int, is_waited_for: bool) -> None:
    read, write = os.pipe()
    events = Events(read)
    pid = os.fork()
    if not pid:
        time.sleep(0.2)
        exec(code)
    events.watch_end(pid)
    if is_waited_for:
        os.waitpid(pid, 0)
    heard = events.wait(5.0)
    told = heard.ended[0]
    assert told == (pid, status) or (is_waited_for and told == (pid, None))  # Linux before 6.15.
    if not is_waited_for:
        os.waitpid(pid, 0)
    os.close(write)


def test_a_wish_wakes_who_waits() -> None:
    read, write = os.pipe()
    os.write(write, b"x")
    begin = time.monotonic()
    assert Events(read).wait(5.0).is_woken
    assert time.monotonic() - begin < 1.0


def make_member(uid: int, nproc: int, capable: int = 0) -> Member:
    member = Member(1, "x", 0)
    member.uid, member.capable = uid, capable
    member.limits = {"nproc": Rlimit(nproc, nproc)}
    return member


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([make_member(64321, 50), make_member(64321, 40)], [("user 64321", 40)]),
        ([make_member(0, 50)], []),
        ([make_member(64321, UNLIMITED)], []),
        ([make_member(64321, 50, 1 << 24)], []),
        ([make_member(64321, 50), make_member(64322, 9)], [("user 64321", 50), ("user 64322", 9)]),
    ],
)
def test_nproc_is_counted_where_it_binds(
    members: list[Member], told: list[tuple[str, int]]
) -> None:
    assert [(one.who, one.limit) for one in read_users(members)] == told


@pytest.mark.root
def test_root_looks_at_no_mount_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a user namespace a user may mount at /dev/shm what never answers."""
    looked: list[str] = []

    def look(folder: str) -> int:
        looked.append(folder)
        return 2**20

    monkeypatch.setattr(tree_read, "read_size", look)
    monkeypatch.setattr(tree_read, "read_free", lambda _folder: 0)
    words = ["unshare", "-U", "-m", "sh", "-c", "echo ready; cat"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout
        started.stdout.readline()
        assert list(read_shared_memory(Member(started.pid, "cat", 0))) == []
        assert looked == []
        started.communicate()
    with subprocess.Popen(
        ["unshare", "-m", "sh", "-c", "echo ready; cat"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdout
        started.stdout.readline()
        assert list(read_shared_memory(Member(started.pid, "cat", 0)))
        started.communicate()
    assert looked == [f"/proc/{started.pid}/root/dev/shm"]


def test_counters_count_from_when_they_were_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 3\noom_kill 3\n")
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("900000\n")
    (tmp_path / "cgroup.procs").write_text("5\n6\n")
    monkeypatch.setattr(tree_read, "list_folders", lambda *_words: [str(tmp_path)])
    groups = Groups()
    assert groups.find(["0::/x"])
    assert not groups.find(["0::/x"])
    assert groups.read_counters() == {str(events): 0}
    events.write_text("low 0\noom 4\noom_kill 4\n")
    assert groups.read_counters() == {str(events): 1}
    assert [one[1:3] for one in groups.read_levels()] == [(900000, 1000000)]
    assert groups.find_shared({5, 6}) == set()
    assert groups.find_shared({5}) == {str(tmp_path)}


def test_a_sampler_sees_a_rise_and_tells_of_it() -> None:
    program = (
        "import resource, time\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
        "print('ready', flush=True)\n"
        "held = []\n"
        "while len(held) < 180:\n"
        "    held.append(open('/etc/passwd')); time.sleep(0.01)\n"
        "time.sleep(0.5)\n"
    )
    told: list[Trend] = []
    with child(program) as started:
        sampler = Sampler(Member(started.pid, "python3", 0), told.append)
        sampler.start()
        started.wait()
        sampler.stop(5.0)
    assert [one.level.item for one in told] == ["nofile"]
    (near,) = [one for one in sampler.history.list_near() if one.level.item == "nofile"]
    assert near.peak.used == 183
    assert near.grew_since is not None
    assert sampler.spent < 0.5


def test_a_look_that_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fail(_self: Tree) -> tuple[list[Member], list[Member]]:
        calls.append(1)
        raise OSError("no")

    monkeypatch.setattr(Tree, "find", fail)
    sampler = Sampler(Member(os.getpid(), "x", 0), lambda _trend: None)
    sampler.start()
    time.sleep(0.3)
    sampler.stop(5.0)
    assert len(calls) > 2


def test_limits_of_this_process_are_its_own() -> None:
    tree = Tree(os.getpid())
    tree.find()
    own = tree.members[os.getpid()]
    assert own.limits["nofile"].soft == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_what_has_ended_and_is_never_waited_for_is_looked_at_once() -> None:
    """A container whose first process waits for nobody is full of those."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    try:
        while read_stat(child.pid)[1][0] != "Z":
            time.sleep(0.01)
        tree = Everyone()
        new, _gone = tree.find()
        assert child.pid not in {one.pid for one in new}
        assert child.pid in tree._strangers
        assert os.getpid() in tree.members
    finally:
        child.wait()
    tree.find()
    assert child.pid not in tree._strangers
