# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process uses of each limit is read where the kernel says it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from mlhost_limits.training import guard_read as guard
from mlhost_limits.training.guard_levels import SHM, Level

V2 = {
    "/proc/self/cgroup": "0::/a/b\n",
    "/proc/self/mountinfo": "30 20 0:26 / /cg rw - cgroup2 cgroup2 rw\n",
    "/proc/self/uid_map": "0 100000 65536\n",
    "/proc/sys/vm/max_map_count": "65530\n",
    "/proc/sys/kernel/threads-max": "1000\n",
    "/proc/sys/kernel/pid_max": "4194304\n",
    "/proc/loadavg": "0.1 0.2 0.3 2/900 4711\n",
    "/cg/a/b/pids.max": "100\n",
    "/cg/a/b/pids.current": "90\n",
    "/cg/a/pids.max": "max\n",
    "/cg/a/b/memory.max": "max\n",
    "/cg/a/b/memory.current": "900\n",
    "/cg/a/b/memory.high": "800\n",
    "/cg/a/b/memory.stat": "anon 5\ninactive_file 300\n",
    "/cg/a/memory.max": "2000\n",
    "/cg/a/memory.current": "1000\n",
    "/cg/a/memory.stat": "inactive_file 999\n",
}
V1 = {
    "/proc/self/cgroup": "4:memory:/a\n8:pids:/a\n",
    "/proc/self/mountinfo": "1 2 0:1 / /m rw - cgroup cgroup rw,memory\n"
    "1 2 0:1 / /p rw - cgroup cgroup rw,pids\n",
    "/p/a/pids.max": "max\n",
    "/p/pids.max": "50\n",
    "/p/pids.current": "7\n",
    "/m/a/memory.limit_in_bytes": "1000\n",
    "/m/a/memory.usage_in_bytes": "950\n",
    "/m/a/memory.stat": "inactive_file 1\ntotal_inactive_file 200\n",
    "/m/memory.limit_in_bytes": "9223372036854771712\n",
    "/m/memory.usage_in_bytes": "5000\n",
}


def read(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> guard.Sources:
    monkeypatch.setattr(guard, "_read", lambda path: files.get(path, ""))
    sources = guard.Sources(0.8)
    sources.find()
    return sources


def test_version_2_bounds_memory_twice_and_idle_cache_is_no_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = read(V2, monkeypatch)
    assert list(sources.read_bounds("memory")) == [
        Level("memory", 600, 800, "/cg/a/b/memory.high"),
        Level("memory", 1000, 2000, "/cg/a/memory.max"),
    ]
    assert list(sources.read_bounds("tasks")) == [Level("tasks", 90, 100, "/cg/a/b/pids.max")]


def test_version_1_bounds_memory_and_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = read(V1, monkeypatch)
    assert list(sources.read_bounds("memory")) == [
        Level("memory", 750, 1000, "/m/a/memory.limit_in_bytes")
    ]
    assert list(sources.read_bounds("tasks")) == [Level("tasks", 7, 50, "/p/pids.max")]


def test_the_tasks_of_the_host_have_the_smaller_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(read(V2, monkeypatch).read_tasks())
    assert Level("tasks", 900, 1000, "kernel.threads-max") in found


@pytest.mark.parametrize(
    ("uid", "uid_map", "is_told"),
    [(0, "0 0 4294967295", False), (0, "0 100000 65536", True), (1000, "0 0 4294967295", True)],
)
def test_nproc_binds_everybody_but_root_of_the_host(
    uid: int, uid_map: str, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setattr(resource, "getrlimit", lambda _number: (64, 64))
    files = {**V2, "/proc/self/uid_map": uid_map, "/proc/self/task/7/children": "8 9 10"}
    sources = read(files, monkeypatch)
    monkeypatch.setattr(os, "listdir", lambda _folder: ["7", "11"])
    found = [one for one in sources.read_tasks() if one.where == "RLIMIT_NPROC"]
    assert found == ([Level("tasks", 5, 64, "RLIMIT_NPROC", 64)] if is_told else [])


def test_the_slice_of_the_user_knows_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _number: (64, 99))
    folder = "/cg/user.slice/user-1000.slice"
    files = {**V2, "/proc/self/cgroup": "0::/user.slice/user-1000.slice/session-1.scope"}
    sources = read({**files, f"{folder}/pids.current": "60"}, monkeypatch)
    assert Level("tasks", 60, 64, "RLIMIT_NPROC", 99) in list(sources.read_tasks())


def test_a_process_is_sought_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = read(V2, monkeypatch)
    monkeypatch.setattr(guard, "_read", lambda _path: "")
    sources.find()
    assert sources._bounds
    monkeypatch.setattr(guard, "_SEEK_AGAIN", 0)
    sources.find()
    assert not sources._bounds


def test_what_cannot_be_read_is_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = read({}, monkeypatch)
    assert not [one for one in sources.read_tasks() if one.where != "RLIMIT_NPROC"]
    assert guard.count_mappings("/nowhere") == 0
    assert not list(guard.read_shared_memory("/nowhere"))


def test_this_process_is_read_for_real() -> None:
    sources = guard.Sources(0.8)
    found = {one.name: one for one in (*sources.read_often(), *sources.read_seldom())}
    assert {"descriptors", SHM, "mappings", "tasks"} <= found.keys()
    mapped = Path("/proc/self/maps").read_text(encoding="latin-1").count("\n")
    assert abs(found["mappings"].used - mapped) < 50
    opened = len(os.listdir("/proc/self/fd")) - 1
    assert found["descriptors"].used == opened


def test_a_full_table_is_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_words: object) -> None:
        raise OSError(24, "Too many open files")

    for name in ("stat", "listdir"):
        monkeypatch.setattr(os, name, fail)
    monkeypatch.setattr(resource, "getrlimit", lambda _number: (100, 200))
    assert list(guard.read_descriptors()) == [Level("descriptors", 100, 100, "RLIMIT_NOFILE", 200)]
    assert guard.find_kinds() == []


def test_no_limit_is_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _number: (-1, -1))
    assert not list(guard.read_descriptors())
    assert not list(guard.read_space())


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("socket:[47]", "socket"),
        ("pipe:[1]", "pipe"),
        ("anon_inode:[eventpoll]", "eventpoll"),
        ("anon_inode:inotify", "inotify"),
        ("net:[40265]", "net"),
        ("/dev/shm/torch_1_2_0 (deleted)", "shared memory"),
        ("/memfd:x (deleted)", "shared memory"),
        ("/data/shard-0001.tar", "files in /data"),
        ("/x", "files in /"),
    ],
)
def test_the_kinds_of_what_is_open(target: str, kind: str) -> None:
    assert guard.name_kind(target) == kind


def test_before_linux_6_2_the_folder_is_listed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    assert guard.count_descriptors(str(tmp_path)) > 0
    assert guard.find_kinds(str(tmp_path)) == [("files in /dev", 1)]
