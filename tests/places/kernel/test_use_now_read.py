# SPDX-License-Identifier: GPL-3.0-or-later
"""What is taken of a bound now is counted on this very host, and told where it is a tenth."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits.core.cause import Link
from mlhost_limits.host.door import count_kernel_lines
from mlhost_limits.host.users import name_user
from mlhost_limits.kernel import use_now_read as subject
from mlhost_limits.kernel.use_now_read import Use, count_tasks, find_uses
from mlhost_limits.sessions.diagnose import _trace_tasks

ME = name_user(os.geteuid())
INSTANCES, WATCHES = "fs.inotify.max_user_instances", "fs.inotify.max_user_watches"
IN_CREATE = 0x100


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand for a kernel in which ten of everything may be taken."""
    values = {"kernel.pty.nr": "7", "fs.file-nr": "9\t0\t10", "fs.aio-nr": "0"}
    monkeypatch.setattr(subject, "read_sysctl", lambda key: values.get(key, "10"))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[None]:
    """Hold 20 instances of inotify, one of which watches 60 folders."""
    libc = ctypes.CDLL(None)
    handles = [libc.inotify_init1(0) for _one in range(20)]
    assert min(handles) >= 0
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert libc.inotify_add_watch(handles[0], os.fsencode(folder), IN_CREATE) >= 0
    yield
    for handle in handles:
        os.close(handle)


@pytest.mark.parametrize(("key", "least"), [(INSTANCES, 20), (WATCHES, 60)])
@pytest.mark.usefixtures("bound", "watched")
def test_inotify_is_counted_by_user_and_the_holder_named(key: str, least: int) -> None:
    mine = next(one for one in find_uses(key) if one.who.startswith(f"{ME}, "))
    assert mine.used >= least
    assert mine.most == 10
    holder = re.search(r"(\d+) of them by .* \(pid (\d+)\)", mine.who)
    assert holder
    held = int(holder[1])
    assert (held, holder[2]) == (least, str(os.getpid())) or held > least  # Another's, then.


@pytest.mark.usefixtures("bound")
def test_the_process_with_most_mappings_is_named() -> None:
    held = [mmap.mmap(-1, mmap.PAGESIZE, prot=(1, 3)[one % 2]) for one in range(5000)]
    (use,) = find_uses("vm.max_map_count")
    assert use.used >= 5000
    assert f"(pid {os.getpid()})" in use.who
    del held


def test_lines_of_any_number_are_counted(tmp_path: Path) -> None:
    (tmp_path / "maps").write_text("x" * 100 + "\n" + "y\n" * 100_000)
    assert count_kernel_lines(str(tmp_path / "maps")) == 100_001


@pytest.mark.parametrize(
    ("key", "uses"),
    [
        ("kernel.keys.maxkeys", [Use(190, 200, name_user(65534))]),
        ("kernel.keys.maxbytes", [Use(2500, 20000, name_user(65534))]),
        ("kernel.keys.root_maxkeys", []),
        ("kernel.pty.max", [Use(7, 10, "all together, kernel.pty.nr")]),
        ("fs.file-max", [Use(9, 10, "all together, fs.file-nr")]),
        ("fs.aio-max-nr", []),
        ("kernel.shmmni", [Use(2, 10, "all together, by ipcs")]),
        ("kernel.pid_max", [Use(321, 10, "all tasks, /proc/loadavg")]),
        ("vm.swappiness", []),
    ],
)
@pytest.mark.usefixtures("bound")
def test_what_the_kernel_tells(monkeypatch: pytest.MonkeyPatch, key: str, uses: list[Use]) -> None:
    texts = {
        # As Linux 6.18 has it.
        "/proc/key-users": "    0:     9 8/8 3/1000000 48/25000000\n65534:   191 190/190 190/200 2500/20000\n 1000:     2 2/2 2/200 30/20000\n",
        "/proc/sysvipc/shm": "       key      shmid perms\n 0 1 600\n 0 2 600\n",
        "/proc/loadavg": "0.70 0.53 0.28 3/321 2934\n",
    }
    monkeypatch.setattr(subject, "read_kernel_text", lambda path: texts[path])
    assert find_uses(key) == uses


def test_the_tasks_of_a_user_are_counted_with_their_threads() -> None:
    before = count_tasks(os.getuid())
    assert before
    ready = threading.Event()
    threads = [threading.Thread(target=ready.wait) for _one in range(40)]
    for thread in threads:
        thread.start()
    after = count_tasks(os.getuid())
    ready.set()
    assert after
    assert after.used >= 40
    assert count_tasks(2**31 - 5) is None


def test_root_is_not_bounded_by_nproc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "count_tasks", lambda _uid: Use(5, 0, "alice, 5 of them by x"))
    assert list(_trace_tasks(1000)) == [Link("in use", "5", "tasks of alice, 5 of them by x")]
    assert list(_trace_tasks(0)) == []
