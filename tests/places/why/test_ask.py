# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of check for a run is a policy, and never a number for what is a mode."""

from __future__ import annotations

import pytest
from mlhost_limits.core.profiles import NO_PROFILE
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.schema import load_policy
from mlhost_limits.why.ask import ask_enough, find_enough, name_way
from mlhost_limits.why.reasons import REASONS

ITEMS = sorted({one.item for one in REASONS.values()} | {"data", "kernel.pid_max"} - {""})
PLACES = (
    ("session", "root"),
    ("unit", "a.service"),
    ("unit", "session-3.scope"),
    ("unit", "user@1000.service"),
    ("job", "slurm"),
    ("container", "docker"),
    ("container", "podman"),
)


@pytest.mark.parametrize("item", ITEMS)
def test_every_policy_that_can_be_made_is_one(item: str) -> None:
    for kind, name in PLACES:
        for has in (None, 0, 3, 2**62):
            raw = ask_enough(item, kind, name, has, None)
            if raw:
                load_policy(raw, NO_PROFILE)


@pytest.mark.parametrize("item", ["vm.overcommit_memory", "kernel.sem", "memory.max"])
def test_what_is_no_quantity_is_never_doubled(item: str) -> None:
    assert not ask_enough(item, "session", "root", 2, None)


def test_a_unit_is_asked_for_its_limit() -> None:
    raw = ask_enough("nofile", "unit", "a.service", None, None)
    assert raw == {"services": {"units": {"a.service": {"nofile": 65536}}}}


def test_no_more_is_asked_of_the_kernel_than_it_takes() -> None:
    assert ask_enough("kernel.pid_max", "session", "root", 2**21 + 1, None) == {
        "kernel": {"kernel.pid_max": 2**22}
    }
    assert not ask_enough("kernel.pid_max", "session", "root", 2**22, None)


def test_every_limit_has_a_way() -> None:
    for one in REASONS.values():
        if one.item in ("nofile", "stack", "as", "kernel.sem", "tasks", "shm_size", "maxlogins"):
            assert name_way(one.item, "session")
    assert name_way("nofile", "container") == "start the container with --ulimit nofile=SOFT:HARD"


@pytest.mark.parametrize(
    ("item", "kind", "name", "policy"),
    [
        ("nofile", "session", "alice", {"sessions": [{"users": ["alice"], "limits": {"nofile": {"soft": 65536}}}]}),
        ("memlock", "session", "alice", {"sessions": [{"users": ["alice"], "limits": {"memlock": {"soft": "unlimited"}}}]}),
        ("nofile", "container", "docker", {"containers": {"docker": {"limits": {"nofile": 65536}}}}),
        ("nofile", "container", "containerd", {}),
        ("as", "container", "docker", {}),
        ("shm_size", "container", "podman", {"containers": {"podman": {"shm_size": 2**33}}}),
        ("shm_size", "container", "containerd", {"shared_memory": {"size": 2**33}}),
        ("shm_size", "unit", "a.service", {"shared_memory": {"size": 2**33}}),
        ("tasks", "container", "podman", {"containers": {"podman": {"tasks": 65536}}}),
        ("tasks", "container", "containerd", {}),
        ("tasks", "unit", "a.service", {"services": {"units": {"a.service": {"tasks": 65536}}}}),
        ("tasks", "unit", "session-3.scope", {}),
        ("tasks", "session", "alice", {}),
        ("nproc", "job", "slurm", {"jobs": {"slurm": {"limits": {"nproc": 65536}}}}),
        ("fsize", "job", "slurm", {}),
        ("remove_ipc", "session", "alice", {"services": {"logind": {"remove_ipc": False}}}),
    ],
)  # fmt: skip
def test_a_limit_is_asked_for_where_it_is_stated(
    item: str, kind: str, name: str, policy: dict[str, object]
) -> None:
    assert ask_enough(item, kind, name, None, None) == policy


@pytest.mark.parametrize(
    ("item", "has", "needed", "enough"),
    [
        ("nofile", 32767, None, 65536),
        ("nofile", 32769, None, 65538),
        ("nofile", 32769, 5000, 5000),
        ("nofile", 2**61 - 1, None, 2**62 - 2),
        ("nofile", 2**61, None, 65536),
        ("memlock", 5, None, UNLIMITED),
        ("memlock", 5, 4096, 4096),
        ("nice", 20, None, 40),
        ("nice", None, None, UNLIMITED),
    ],
)
def test_enough_is_what_it_takes_or_twice_what_there_is(
    item: str, has: int | None, needed: int | None, enough: int
) -> None:
    assert find_enough(item, has, needed) == enough


@pytest.mark.parametrize(
    ("item", "enough", "most"),
    [
        ("fs.inotify.max_user_instances", 2**10, 2**31 - 1),
        ("fs.inotify.max_user_watches", 2**20, 2**31 - 1),
        ("vm.max_map_count", 2**18, 2**31 - 1),
        ("kernel.keys.maxkeys", 2000, 2**31 - 1),
        ("kernel.threads-max", 2**18, 2**29),
        ("kernel.pid_max", 2**18, 2**22),
        ("kernel.shmmni", 2**13, 2**15),
        ("kernel.pty.max", 2**13, 2**20),
        ("net.core.somaxconn", 2**12, 2**31 - 1),
        ("user.max_user_namespaces", 2**14, 2**31 - 1),
    ],
)
def test_of_a_sysctl_that_counts_no_more_is_asked_than_the_kernel_takes(
    item: str, enough: int, most: int
) -> None:
    assert ask_enough(item, "session", "root", None, None) == {"kernel": {item: enough}}
    assert ask_enough(item, "session", "root", most - 1, None) == {"kernel": {item: most}}
    assert ask_enough(item, "session", "root", most, None) == {}


def test_of_open_files_a_host_is_asked_for_no_more_than_the_kernel_counts() -> None:
    assert ask_enough("fs.file-max", "session", "root", None, None) == {
        "kernel": {"fs.file-max": 2**21}
    }
    assert ask_enough("fs.file-max", "session", "root", 2**62 - 1, None)
    assert ask_enough("fs.file-max", "session", "root", 2**62, None) == {}


@pytest.mark.parametrize(
    ("item", "enough"), [("stack", 64 * 2**20), ("msgqueue", 8 * 2**20), ("shm_size", 8 * 2**30)]
)
def test_of_sizes_enough_is_never_little(item: str, enough: int) -> None:
    assert find_enough(item, None, None) == enough
