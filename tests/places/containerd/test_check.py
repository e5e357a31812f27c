# SPDX-License-Identifier: GPL-3.0-or-later
"""Starteds of containers of containerd are judged where they run, and of a new one by ctr's."""

from __future__ import annotations

import os

import pytest
from mlhost_limits.containerd import check as check_containerd
from mlhost_limits.containerd import explain as trace_containerd
from mlhost_limits.containerd.base_spec import BaseSpec
from mlhost_limits.containers.cgroup import Container
from mlhost_limits.containers.findings import Canary, ContainerLimits
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.containers.read import RunningContainer
from mlhost_limits.containers.spec import Started
from mlhost_limits.core.finding import Finding
from mlhost_limits.core.process_owner import MAKER
from mlhost_limits.core.values import UNLIMITED, Declaration
from mlhost_limits.host.look import Look, read_process
from mlhost_limits.services import diagnose as services
from mlhost_limits.services import explain as trace_services
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.tasks import Level

from tests.worlds.distributions import DEBIAN

AT = Declaration("/etc/containerd/config.toml", 3, 'base_runtime_spec = "/b"', "/b")
POLICY = ContainerPolicy({}, tasks=500)
CANARY = [Level("canary", "/sys/canary", UNLIMITED), Level("mlhost-limits", "/sys/m", UNLIMITED)]
BOX = [Level("box", "/sys/box", 100), Level("default", "/sys/default", UNLIMITED)]
ID = 64 * "a"
SCOPE = [
    Level(f"crio-{ID}.scope", "/sys/x", 100),
    Level("kubepods.slice", "/sys/kubepods.slice", 90),
]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    """A host that holds 10000 tasks, whose containerd is this process."""
    me = read_process(os.getpid())
    for module in (services, trace_services):
        monkeypatch.setattr(module, "read_most_tasks", lambda: 10000)
    monkeypatch.setattr(services, "read_sources", lambda _unit: Files(None, vendor=DEBIAN))
    monkeypatch.setattr(check_containerd, "find_containerd", lambda _processes: me)
    monkeypatch.setattr(check_containerd, "read_base_spec", lambda: None)
    monkeypatch.setattr(check_containerd, "find_containers", lambda _processes: [])
    seen = Canary(ContainerLimits({}, None, tuple(CANARY)))
    monkeypatch.setattr(check_containerd, "run_containerd_canary", lambda _base: seen)
    monkeypatch.setattr(check_containerd, "find_maker", lambda _one: "")
    return Look()


def check(look: Look, canary: str = "auto") -> list[Finding]:
    return list(check_containerd.check_containerd(POLICY, canary, look))


def test_a_new_container(look: Look) -> None:
    (found,) = check(look)
    assert (found.status, found.observation.value, found.causes) == ("pass", UNLIMITED, ())
    (found,) = check(look, "never")
    assert (found.status, found.requirement.item) == ("unknown", "tasks")


def test_a_base_specification_bounds_a_new_container(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = BaseSpec("/b", {}, AT, 100)
    monkeypatch.setattr(check_containerd, "read_base_spec", lambda: base)
    monkeypatch.setattr(trace_containerd, "measure_new", check_containerd.measure_new)
    few = Canary(ContainerLimits({}, None, (CANARY[0]._replace(most=100), CANARY[1])))
    monkeypatch.setattr(check_containerd, "run_containerd_canary", lambda _base: few)
    (found,) = check(look)
    assert [cause.code for cause in found.causes] == ["containerd-base-spec"]
    assert found.outlook[1:] == ("fail", "fail")
    links = trace_containerd.trace_containerd("tasks", look)
    chain = [("kernel", "10000"), ("base spec", "100"), ("container", "100")]
    assert [(one.name, one.value) for one in links] == chain


@pytest.mark.parametrize(
    ("container", "task", "levels", "codes", "owner"),
    [
        (Container("containerd", "box"), Started("box", {}, tasks=100), BOX, ["containerd-own-spec"], MAKER),
        (Container("containerd", "box"), Started("box", {}), BOX[1:], [], ""),
        (Container("containerd", ID), Started("box", {}), [SCOPE[0]], ["tasks-not-in-force"], ""),
        (Container("cri-o", ID), Started("box", None), SCOPE, ["containerd-pod-pids"], ""),
    ],
)  # fmt: skip
def test_a_running_container(
    look: Look,
    monkeypatch: pytest.MonkeyPatch,
    container: Container,
    task: Started,
    levels: list[Level],
    codes: list[str],
    owner: str,
) -> None:
    """What nobody states is systemd's, and of what is not known no unit is blamed."""
    one = RunningContainer(container, read_process(os.getpid()), 0)
    monkeypatch.setattr(check_containerd, "find_containers", lambda _processes: [one])
    monkeypatch.setattr(check_containerd, "read_levels", lambda _cgroup: levels)
    monkeypatch.setattr(check_containerd, "read_task", lambda _one: task)
    found = check(look)[0]
    assert found.requirement.place == f"container:{container.name}"
    assert [cause.code for cause in found.causes] == codes
    assert found.owner == owner


def test_the_container_of_a_user_is_named_as_that_users(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who watches it says which namespace and id it has."""
    one = RunningContainer(Container("containerd", "box"), read_process(os.getpid()), 1)
    monkeypatch.setattr(check_containerd, "find_containers", lambda _processes: [one])
    monkeypatch.setattr(check_containerd, "read_levels", lambda _cgroup: BOX)
    monkeypatch.setattr(check_containerd, "read_task", lambda _one: Started("box", {}, tasks=100))
    assert check(look)[0].requirement.place == "container:containerd/daemon/box"
