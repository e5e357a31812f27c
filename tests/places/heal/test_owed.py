# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a process lives, by what root alone can have made, and what it is owed there."""

from __future__ import annotations

import pytest
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import User
from mlhost_limits.heal.owed import Home, find_living, find_owed
from mlhost_limits.schema import load_policy

ID = "0123456789abcdef" * 4
ALICE = User("alice", 1000, 1000, frozenset({"ml"}), frozenset({1000}))
OWN = "/user.slice/user-1000.slice/user@1000.service"
POLICY = load_policy(
    {
        "sessions": [{"users": ["@ml"], "limits": {"nofile": 65536, "maxlogins": 4}}],
        "services": {
            "units": {"train@.service": {"nofile": 4096, "tasks": 900}},
            "user_default": {"nofile": 2048},
        },
        "containers": {"docker": {"limits": {"nofile": 1048576}, "shm_size": "8GiB"}},
        "jobs": {"slurm": {"limits": {"memlock": "unlimited"}}},
        "shared_memory": {"size": "1GiB"},
        "processes": [
            {"name": "trainer", "limits": {"memlock": "unlimited"}},
            {"user": "alice", "limits": {"nproc": 5000}},
            {"name": "a-name-of-many-letters", "limits": {"core": 7}},
            {"unit": "serve.service", "limits": {"stack": "1MiB"}},
        ],
    },
    "none",
)


@pytest.mark.parametrize(
    ("path", "home"),
    [
        ("/user.slice/user-1000.slice/session-3.scope", Home("session", "alice")),
        (f"{OWN}/app.slice/tmux.scope", Home("session", "alice")),
        (f"{OWN}/app.slice/train.service", Home("user-service", "train.service")),
        ("/system.slice/train@1.service/worker", Home("service", "train@1.service")),
        ("/system.slice/run-u3.scope", Home("service", "run-u3.scope")),
        (f"/system.slice/docker-{ID}.scope", Home("container", ID, "docker")),
        (f"/machine.slice/libpod-{ID}.scope/container", Home("container", ID, "podman")),
        ("/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", Home("job", "7")),
        ("/system.slice/node1_slurmstepd.scope/job_7/step_0", Home("job", "7")),
        ("/", Home("session", "alice")),
        (f"/docker/{ID}", Home("container", ID, "docker")),
    ],
)
def test_a_home_is_told_by_its_cgroup(path: str, home: Home) -> None:
    assert find_living(f"0::{path}", "alice") == home


@pytest.mark.parametrize(
    "path",
    [
        f"{OWN}/docker-{ID}.scope",
        f"{OWN}/libpod-{ID}.scope/container",
        f"/user.slice/docker-{ID}.scope",
        f"/system.slice/hers.service/docker-{ID}.scope",
        f"/system.slice/hers.service/docker/{ID}",
        "/user.slice",
    ],
)
def test_a_cgroup_that_a_user_may_have_made_proves_no_container(path: str) -> None:
    assert find_living(f"0::{path}", "mallory") is None


@pytest.mark.parametrize(
    "path",
    [
        f"{OWN}/slurmstepd.scope/job_7",
        f"{OWN}/system.slice/train@1.service",
        "/system.slice/hers.service/system.slice/slurmstepd.scope/job_7",
    ],
)
def test_a_cgroup_that_a_user_may_have_made_proves_no_job_and_no_unit(path: str) -> None:
    home = find_living(f"0::{path}", "mallory")
    assert home in (
        Home("session", "mallory"),
        Home("user-service", "train@1.service"),
        Home("service", "hers.service"),
    )


def owed(home: Home, comm: str = "python", uid: int = 1000) -> object:
    user = ALICE if uid else User("root", 0, 0)
    return find_owed(POLICY, home, user, comm, "0::/")


def test_each_place_is_owed_what_the_policy_asks_there() -> None:
    wide = Limit(65536, 65536)
    own = {"nproc": Limit(5000, 5000)}
    assert owed(Home("session", "alice")) == ({"nofile": wide, **own}, None, 2**30)
    unit = {"nofile": Limit(4096, 4096), **own}
    assert owed(Home("service", "train@1.service")) == (unit, 900, 2**30)
    user_unit = {"nofile": Limit(2048, 2048), **own}
    assert owed(Home("user-service", "train.service")) == (user_unit, None, 2**30)
    container = {"nofile": Limit(1048576, 1048576), **own}
    assert owed(Home("container", ID, "docker")) == (container, None, 2**33)
    assert owed(Home("container", ID, "podman")) == (own, None, None)
    job = {"memlock": Limit(2**64 - 1, 2**64 - 1), **own}
    assert owed(Home("job", "7")) == (job, None, 2**30)


def test_the_name_of_a_process_counts_only_where_root_gave_it() -> None:
    home = Home("service", "other.service")
    assert "memlock" not in owed(home, "trainer")[0]  # type: ignore[index]
    assert "memlock" in owed(home, "trainer", uid=0)[0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("comm", "is_meant"),
    [("a-name-of-many-", True), ("a-name-of-many-l", False), ("a-name-of-many", False)],
)
def test_a_name_is_compared_as_far_as_the_kernel_keeps_it(comm: str, is_meant: bool) -> None:
    """TASK_COMM_LEN of the kernel: 15 bytes and a zero."""
    found = find_owed(POLICY, Home("service", "x.service"), User("root", 0, 0), comm, "0::/")
    assert ("core" in found.limits) is is_meant


@pytest.mark.parametrize(("unit", "is_meant"), [("serve.service", True), ("other.service", False)])
def test_a_rule_for_a_unit_is_for_what_lives_in_it(unit: str, is_meant: bool) -> None:
    cgroup = f"0::/system.slice/{unit}"
    found = find_owed(POLICY, Home("service", unit), User("root", 0, 0), "python", cgroup)
    assert ("stack" in found.limits) is is_meant
