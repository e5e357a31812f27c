# SPDX-License-Identifier: GPL-3.0-or-later
"""What processes hold of what they may is read from /proc, on kernels that count and those not."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits.host.look import read_process
from mlhost_limits.node import usage_read as usage
from mlhost_limits.node.load import Load


def find(pid: int) -> usage.Usage:
    return next(one for one in usage.find_usages() if one.process.pid == pid)


def test_this_process_is_as_the_kernel_knows_it() -> None:
    me = find(os.getpid())
    assert me.process == read_process(os.getpid())
    assert me.limits["nofile"] == resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = [os.dup(0) for _number in range(5)]
    more = find(os.getpid())
    assert me.open_files is not None
    assert more.open_files == me.open_files + 5
    for handle in kept:
        os.close(handle)


@pytest.mark.parametrize("tells_size", [True, False])
def test_descriptors_are_counted_as_the_kernel_allows(tells_size: bool) -> None:
    if tells_size and not usage.tells_fd_size("/proc"):
        pytest.skip("this kernel is older than 6.2")
    # Counting opens the folder itself, which is then one of them.
    counted = usage.count_open_files("/proc/self", tells_size)
    assert counted == len(os.listdir("/proc/self/fd")) - (1 if tells_size else 0)


@pytest.fixture
def locker() -> Iterator[int]:
    """Run a process that locks 64 KiB."""
    code = (
        "import ctypes, mmap, sys, time\n"
        "area = mmap.mmap(-1, 65536)\n"
        "start = ctypes.addressof(ctypes.c_char.from_buffer(area))\n"
        "sys.exit(3) if ctypes.CDLL(None).mlock(ctypes.c_void_p(start), 65536) else None\n"
        "print('locked', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"locked\n"
        yield process.pid
        process.kill()


def test_locked_memory_is_seen(locker: int) -> None:
    assert find(locker).memory == (65536, 0)
    (load,) = usage.find_loads((find(locker),))
    assert isinstance(load, Load)
    assert (load.pid, load.locked) == (locker, 65536)


def test_what_ends_while_it_is_read_is_left_out() -> None:
    """Processes come and go all the time while others look."""
    done = threading.Event()

    def spawn() -> None:
        while not done.is_set():
            os.waitpid(os.spawnv(os.P_NOWAIT, "/bin/true", ["true"]), 0)

    thread = threading.Thread(target=spawn)
    thread.start()
    try:
        for _round in range(5):
            assert any(one.process.pid == os.getpid() for one in usage.find_usages())
    finally:
        done.set()
        thread.join()


def test_a_zombie_holds_nothing() -> None:
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        zombie = find(child)
        assert zombie.memory is None
        assert list(usage.find_loads((zombie,))) == []
    finally:
        os.waitpid(child, 0)


def write_process(proc: Path, pid: int, comm: str) -> None:
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} ({comm}) S 1 " + " ".join(map(str, range(5, 40))))
    (folder / "status").write_text("Name:\tx\nUid:\t1\t2\t3\t4\nVmLck:\t  64 kB\nVmPin:\t 128 kB\n")
    (folder / "cgroup").write_text("0::/x\n")
    (folder / "limits").write_text(Path("/proc/self/limits").read_text())


def test_a_name_with_brackets_and_a_user_in_effect(tmp_path: Path) -> None:
    write_process(tmp_path, 12, "a) S 1 (b")
    (tmp_path / "13").mkdir()  # It ended.
    (tmp_path / "sys").mkdir()
    (one,) = usage.find_usages(str(tmp_path))
    assert one.process.comm == "a) S 1 (b"
    assert one.process.uid == 2
    assert one.process.start == 22
    assert one.memory == (65536, 131072)
    assert one.open_files == 0


@pytest.mark.parametrize("text", ["", "x y z", "1"])
def test_a_file_nr_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "sys/fs").mkdir(parents=True)
    (tmp_path / "sys/fs/file-nr").write_text(text)
    assert usage.read_files(str(tmp_path)) is None
    real = usage.read_files()
    assert real
    assert 0 < real.allocated < real.maximum


def test_sleepers_are_all_there() -> None:
    children = [os.posix_spawn("/bin/sleep", ["sleep", "60"], {}) for _number in range(20)]
    try:
        assert set(children) <= {one.process.pid for one in usage.find_usages()}
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
