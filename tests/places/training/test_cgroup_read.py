# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest bound of memory and CPU counts, on every kind of cgroups, and on real ones."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits.training.cgroup_read import (
    MemoryLevel,
    Quota,
    count_cpus,
    move_to,
    read_cpuset,
    read_memory_levels,
    read_quotas,
)

MIB = 2**20
SLICE = "/user.slice/user-1000.slice"
TOP = "/sys/fs/cgroup"
V2 = f"0::{SLICE}/session-3.scope\n"
V2_MOUNT = f"35 24 0:30 / {TOP} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
# As systemd 247 in hybrid mode mounts it.
V1 = (
    f"5:memory:{SLICE}\n4:cpu,cpuacct:{SLICE}\n3:cpuset:/\n1:name=systemd:{SLICE}/x\n0::{SLICE}/x\n"
)
V1_MOUNTS = (
    f"36 24 0:31 / {TOP}/memory rw shared:9 - cgroup cgroup rw,memory\n"
    f"37 24 0:32 / {TOP}/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
    f"38 24 0:33 / {TOP}/cpuset rw - cgroup cgroup rw,cpuset\n"
    f"39 24 0:34 / {TOP}/unified rw - cgroup2 cgroup2 rw\n"
)
# As Docker shows it to a container with the host's cgroup namespace.
INSIDE = "5:memory:/docker/ab12\n4:cpu,cpuacct:/docker/ab12\n"
INSIDE_MOUNTS = (
    "36 24 0:31 /docker/ab12 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    "37 24 0:32 /docker/ab12 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
)


def make(root: Path, files: dict[str, str]) -> str:
    for path, text in files.items():
        file = root / f"{TOP}/{path}".lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return str(root)


@pytest.mark.parametrize("name", ["memory.max", "memory.current"])
@pytest.mark.parametrize("text", ["", "lots\n", "-5\n"])
def test_what_is_no_number_is_no_limit_that_is_left_out(
    tmp_path: Path, name: str, text: str
) -> None:
    files = {f"{SLICE}/memory.max": "5\n", f"{SLICE}/{name}": text}
    with pytest.raises(OSError, match=f"{name} holds {text.strip()!r}, which is not a number"):
        read_memory_levels(V2, V2_MOUNT, make(tmp_path, files))


def test_version_2(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            f"{SLICE}/session-3.scope/memory.max": "max\n",
            f"{SLICE}/memory.max": f"{512 * MIB}\n",
            f"{SLICE}/memory.high": f"{256 * MIB}\n",
            "user.slice/memory.high": "max\n",
            f"{SLICE}/memory.current": f"{200 * MIB}\n",
            f"{SLICE}/memory.stat": f"anon {9 * MIB}\ninactive_file {150 * MIB}\nfile 7\n",
            "user.slice/memory.max": f"{1024 * MIB}\n",
            "user.slice/memory.current": f"{1100 * MIB}\n",
            f"{SLICE}/session-3.scope/cpu.max": "max 100000\n",
            f"{SLICE}/cpu.max": "150000 100000\n",
            f"{SLICE}/cpuset.cpus.effective": "0-3,8\n",
        },
    )
    levels = read_memory_levels(V2, V2_MOUNT, root)
    assert levels == [
        MemoryLevel(f"{TOP}{SLICE}", 512 * MIB, 50 * MIB),
        MemoryLevel(f"{TOP}{SLICE}", 256 * MIB, 50 * MIB, is_high=True),
        MemoryLevel(f"{TOP}/user.slice", 1024 * MIB, 1100 * MIB),
    ]
    assert [level.free for level in levels] == [462 * MIB, 206 * MIB, 0]
    assert read_quotas(V2, V2_MOUNT, root) == [Quota(f"{TOP}{SLICE}", 1.5)]
    assert read_cpuset(V2, V2_MOUNT, root) == (f"{TOP}{SLICE}", 5)


def test_version_1_beside_version_2(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            f"memory{SLICE}/memory.limit_in_bytes": f"{512 * MIB}\n",
            f"memory{SLICE}/memory.usage_in_bytes": f"{20 * MIB}\n",
            f"memory{SLICE}/memory.stat": f"inactive_file 1\ntotal_inactive_file {5 * MIB}\n",
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
            f"cpu,cpuacct{SLICE}/cpu.cfs_quota_us": "50000\n",
            f"cpu,cpuacct{SLICE}/cpu.cfs_period_us": "100000\n",
            "cpu,cpuacct/user.slice/cpu.cfs_quota_us": "-1\n",
            "cpu,cpuacct/user.slice/cpu.cfs_period_us": "100000\n",
            "cpuset/cpuset.cpus": "0-1\n",
        },
    )
    assert read_memory_levels(V1, V1_MOUNTS, root) == [
        MemoryLevel(f"{TOP}/memory{SLICE}", 512 * MIB, 15 * MIB)
    ]
    assert read_quotas(V1, V1_MOUNTS, root) == [Quota(f"{TOP}/cpu,cpuacct{SLICE}", 0.5)]
    assert read_cpuset(V1, V1_MOUNTS, root) == (f"{TOP}/cpuset", 2)


@pytest.mark.parametrize("text", [INSIDE, INSIDE.replace("/docker/ab12", "/elsewhere")])
def test_a_container_sees_its_own_part(tmp_path: Path, text: str) -> None:
    root = make(tmp_path, {"memory/memory.limit_in_bytes": f"{64 * MIB}\n"})
    assert read_memory_levels(text, INSIDE_MOUNTS, root) == [
        MemoryLevel(f"{TOP}/memory", 64 * MIB, 0)
    ]


def test_a_cgroup_that_is_not_there_yet_is_under_those_that_are(tmp_path: Path) -> None:
    root = make(tmp_path, {"user.slice/memory.max": f"{64 * MIB}\n"})
    levels = read_memory_levels(V2, V2_MOUNT, root)
    assert levels == [MemoryLevel(f"{TOP}/user.slice", 64 * MIB, 0)]


def test_a_path_outside_of_the_namespace_is_the_mount(tmp_path: Path) -> None:
    root = make(tmp_path, {"memory.max": f"{64 * MIB}\n"})
    levels = read_memory_levels("0::/../../x\n", V2_MOUNT, root)
    assert levels == [MemoryLevel(TOP, 64 * MIB, 0)]


@pytest.mark.parametrize(("text", "mounts"), [("", V2_MOUNT), (V2, ""), (V1, V2_MOUNT)])
def test_what_cannot_be_seen_is_unknown_and_not_unlimited(text: str, mounts: str) -> None:
    assert read_memory_levels(text, mounts) is None
    assert read_quotas(text, mounts) == []
    assert read_cpuset(text, mounts) is None


@pytest.mark.parametrize(("text", "count"), [("0-3,8\n", 5), ("7", 1), ("", 0), ("\n", 0)])
def test_a_list_of_cpus(text: str, count: int) -> None:
    assert count_cpus(text) == count


def test_the_same_process_elsewhere() -> None:
    assert move_to("5:memory:/a\n0::/b\n", "/user.slice") == "5:memory:/user.slice\n0::/user.slice"


def find_real() -> tuple[Path, bool] | None:
    """Return where memory is bounded on this machine, and whether by version 2."""
    for top, unified in ((Path(f"{TOP}/memory"), False), (Path(TOP), True)):
        name = "cgroup.subtree_control" if unified else "memory.limit_in_bytes"
        file = top / name
        ready = os.geteuid() == 0 and file.is_file() and os.access(top, os.W_OK)
        if ready and (not unified or "memory" in file.read_text()):
            return top, unified
    return None


@pytest.fixture
def real() -> Iterator[tuple[Path, bool]]:
    """Make two cgroups, one in the other, and remove them."""
    found = find_real()
    if found is None:
        pytest.skip("no cgroup can be made here: needs root and a memory controller")
    top, unified = found
    outer = top / f"mlhost-test-{os.getpid()}"
    inner = outer / "inner"
    outer.mkdir()
    if unified:
        (outer / "cgroup.subtree_control").write_text("+memory")
    inner.mkdir()
    yield inner, unified
    for folder in (inner, outer):
        for _attempt in range(100):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.05)  # The kernel takes a moment to let go of a process that ended.


def test_real_cgroups(real: tuple[Path, bool]) -> None:
    inner, unified = real
    name = "memory.max" if unified else "memory.limit_in_bytes"
    (inner.parent / name).write_text(str(300 * MIB))
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            (inner / "cgroup.procs").write_text(str(process.pid))
            text = Path(f"/proc/{process.pid}/cgroup").read_text()
            levels = read_memory_levels(text, Path("/proc/self/mountinfo").read_text())
            assert levels is not None
            assert [(level.path, level.limit) for level in levels][:1] == [
                (str(inner.parent), 300 * MIB)
            ]
            assert 0 <= levels[0].used < 300 * MIB
            (inner / name).write_text(str(200 * MIB))
            levels = read_memory_levels(text, Path("/proc/self/mountinfo").read_text())
            assert levels is not None
            assert [level.limit for level in levels][:2] == [200 * MIB, 300 * MIB]
        finally:
            process.kill()


CPUS = ("cpu", "cpuset")


@pytest.fixture
def real_cpus() -> Iterator[Path]:
    """Make two cgroups of version 2 that bound CPUs, one in the other, and remove them."""
    control = Path(TOP, "cgroup.subtree_control")
    known = Path(TOP, "cgroup.controllers")
    if os.geteuid() or not known.is_file() or not set(CPUS) <= set(known.read_text().split()):
        pytest.skip("CPUs cannot be bounded here: needs root and cgroups of version 2")
    added = set(CPUS) - set(control.read_text().split())
    outer = Path(TOP, f"mlhost-test-cpus-{os.getpid()}")
    try:
        control.write_text(" ".join(f"+{name}" for name in CPUS))
        (outer / "inner").mkdir(parents=True)
        (outer / "cgroup.subtree_control").write_text("+cpu +cpuset")
        yield outer
    finally:
        (outer / "inner").rmdir()
        outer.rmdir()
        control.write_text(" ".join(f"-{name}" for name in added))


def test_real_cpus(real_cpus: Path) -> None:
    inner, mounts = real_cpus / "inner", Path("/proc/self/mountinfo").read_text()
    text = f"0::/{real_cpus.name}/inner\n"
    assert read_quotas(text, mounts) == []
    (real_cpus / "cpu.max").write_text("50000 100000")
    assert read_quotas(text, mounts) == [Quota(str(real_cpus), 0.5)]
    (inner / "cpu.max").write_text("150000 100000")
    assert read_quotas(text, mounts) == [Quota(str(inner), 1.5), Quota(str(real_cpus), 0.5)]
    (real_cpus / "cpuset.cpus").write_text("0")
    assert read_cpuset(text, mounts) == (str(inner), 1)
