# SPDX-License-Identifier: GPL-3.0-or-later
"""What a policy asks of Podman and containerd is read whole, and refused with its key path."""

from __future__ import annotations

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.reader import Limit, PolicyError
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.schema import load_policy

NOFILE = {"nofile": {"soft": 1024, "hard": 4096}}


def test_both_engines_are_read() -> None:
    raw = {
        "podman": {"limits": NOFILE, "shm_size": "1GiB", "users": ["alice"]},
        "containerd": {"limits": NOFILE},
    }
    policy = load_policy({"containers": raw}, "none")
    limits = {"nofile": Limit(1024, 4096)}
    assert policy.get("podman") == ContainerPolicy(limits, 2**30, users=("alice",))
    assert policy.get("containerd") == ContainerPolicy(limits)
    assert policy.get("docker") is None


@pytest.mark.parametrize(("word", "tasks"), [(500, 500), ("unlimited", UNLIMITED), (-1, UNLIMITED)])
def test_tasks_alone_are_enough_to_ask(word: object, tasks: int) -> None:
    raw = {engine: {"tasks": word} for engine in ("docker", "podman", "containerd")}
    policy = load_policy({"containers": raw}, "none")
    assert policy.get("docker") == ContainerPolicy({}, None, tasks)
    assert policy.get("podman") == ContainerPolicy({}, tasks=tasks)
    assert policy.get("containerd") == ContainerPolicy({}, tasks=tasks)


def test_an_empty_part_asks_for_nothing() -> None:
    policy = load_policy({"containers": {"podman": {}, "containerd": {}}}, "training")
    assert (policy.get("podman"), policy.get("containerd")) == (None, None)


@pytest.mark.parametrize(
    ("engine", "section", "problem"),
    [
        ("podman", {"limit": {}}, "containers.podman.limit: is unknown; accepted are limits, shm_size, tasks, users"),
        ("podman", {"limits": {"nofile": "unlimited"}},
         "containers.podman.limits.nofile: 'unlimited' lets no container start; a number is accepted"),
        ("podman", {"limits": {"core": {"soft": 0}}},
         "containers.podman.limits.core: Podman needs soft and hard, or one value"),
        ("podman", {"limits": NOFILE, "shm_size": 0},
         "containers.podman.shm_size: a size above 0 is accepted"),
        ("podman", {"limits": NOFILE, "users": "alice"},
         "containers.podman.users: 'alice' was given; a list of users is accepted"),
        ("podman", {"limits": NOFILE, "users": ["root"]},
         "containers.podman.users: 'root' is not a user's name; root needs none"),
        ("podman", {"limits": NOFILE, "users": [7]},
         "containers.podman.users: 7 is not a user's name; root needs none"),
        ("podman", {"users": ["alice"]},
         "containers.podman.users: without limits, shm_size and tasks nothing is asked of them"),
        ("docker", {"tasks": 0}, "containers.docker.tasks: a number above 0, or 'unlimited', is accepted"),
        ("podman", {"tasks": "many"},
         "containers.podman.tasks: 'many' is not a limit: accepted are a whole number or 'unlimited'"),
        ("containerd", {"shm_size": 1}, "containers.containerd.shm_size: is unknown; accepted are limits, tasks"),
        ("containerd", {"limits": {"nofile": {"hard": 5}}},
         "containers.containerd.limits.nofile: a unit needs soft and hard, or one value"),
    ],
)  # fmt: skip
def test_what_is_refused(engine: str, section: dict[str, object], problem: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy({"containers": {engine: section}}, "training")
    assert problem in caught.value.problems


def test_a_limit_of_one_bound_is_not_stated() -> None:
    """Engines take both bounds or neither."""
    limits = {"core": Limit(soft=0), "nproc": Limit(hard=5), "nofile": Limit(5, 6, 7)}
    assert ContainerPolicy(limits).stated == {"nofile": (5, 6)}
