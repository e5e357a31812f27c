# SPDX-License-Identifier: GPL-3.0-or-later
"""What the place of containerd answers, and which lines of others beat its drop-in."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.containerd import check, explain
from mlhost_limits.containerd.base_spec import (
    BaseSpec,
    Kept,
    find_base_spec,
    find_rlimit,
    read_kept,
    write_tasks,
)
from mlhost_limits.containerd.causes import find_task_causes, find_tasks_causes
from mlhost_limits.containerd.place import Containerd
from mlhost_limits.containerd.plan import FOLDER, plan_containerd
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.containers.spec import Started
from mlhost_limits.containers.tasks import Bounds
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.policy import CheckOptions
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Declaration, Rlimit
from mlhost_limits.host.look import Look
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.tasks import Level
from mlhost_limits.systemd.unit_file import Source

POLICY = ContainerPolicy({"nofile": Limit(65536, 1048576), "memlock": Limit(UNLIMITED, UNLIMITED)})
MAIN = Source("/lib/systemd/system/containerd.service", "[Service]\nLimitNOFILE=infinity\n")
AT = Declaration("/etc/containerd/config.toml", 3, 'base_runtime_spec = "/b"', "/b")


@pytest.mark.parametrize(
    ("line", "item"), [("LimitMEMLOCK=2000000", "memlock"), ("LimitNOFILE=5", "nofile")]
)
def test_the_line_of_that_limit_beats_ours(line: str, item: str) -> None:
    files = Files(MAIN, (Source(f"{FOLDER}/95-site.conf", f"[Service]\n{line}\n"),))
    (found,) = plan_containerd(POLICY, files, 1048576).shortfalls
    assert (found.foreign.text, item.upper() in found.ours) == (line, True)


def test_of_a_base_specification_only_what_is_asked_and_lacks_is_told() -> None:
    limits = {"core": Rlimit(0, 0), "memlock": Rlimit(UNLIMITED, UNLIMITED), "nofile": Rlimit(1, 2)}
    base = BaseSpec("/etc/b.json", limits, AT)
    (found,) = plan_containerd(POLICY, Files(MAIN), 1048576, base=base).shortfalls
    assert "LimitNOFILE" in found.ours


def test_the_line_of_a_base_specification_is_cited() -> None:
    table = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]'
    text = f'version = 2\n{table}\r\nbase_runtime_spec = "/b.json"\r\n'
    path = "/etc/containerd/config.toml"
    assert find_base_spec(text, path) == (path, 3, 'base_runtime_spec = "/b.json"', "/b.json")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"process": null}',
        '{"process": {"rlimits": null}}',
        "[]",
        '{"process": {"rlimits": []}}',
    ],
)
def test_a_specification_that_states_nothing_has_no_limit(text: str) -> None:
    assert find_rlimit(text, "nofile") == {}
    assert write_tasks(text, 5) is None


def test_a_path_with_a_blank_is_remembered_whole() -> None:
    kept = Kept("nofile", Rlimit(1, 2), Rlimit(3, UNLIMITED), "/etc/my specs/pods  a.json")
    assert read_kept(f"[Service]\n{kept}\nLimitCORE=0\n") == [kept]


WANTED = Requirement("container:containerd/default/web", "nofile", "soft", 65536)


@pytest.mark.parametrize(
    ("since", "told"),
    [("", "web keeps nofile 9"), ("noon", "web has run since noon and keeps nofile 9")],
)
def test_since_when_a_container_runs_is_told_where_it_is_known(since: str, told: str) -> None:
    (cause,) = find_task_causes(WANTED, 9, Started("web", None, since), [], 65536)
    assert cause.text == told


def test_the_kubelet_is_not_blamed_for_what_is_systemd_s() -> None:
    """Nor for a cgroup of its own that leaves enough."""
    wanted = WANTED._replace(item="tasks", bound="value", minimum=500)
    above = (Level("system.slice", "/sys/system.slice", 9), Level("kubepods.slice", "/sys/k", 900))
    assert find_tasks_causes(wanted, Bounds(None, None, above), Started("web"), []) == []


@pytest.mark.parametrize(
    ("kind", "name", "called"),
    [
        ("new-container", "containerd", True),
        ("container", "containerd/default/web", False),
        ("new-container", "podman", False),
    ],
)
def test_only_a_new_container_is_explained(
    monkeypatch: pytest.MonkeyPatch, kind: str, name: str, called: bool
) -> None:
    monkeypatch.setattr(explain, "trace_containerd", lambda item, _look: [item])
    assert Containerd().explain(kind, name, "nofile", Look()) == (["nofile"] if called else None)


def test_the_codes_of_each_name() -> None:
    ((name, codes),) = Containerd().codes()
    assert (name, "containerd-base-spec" in codes) == ("new-container:containerd", True)


def test_a_unit_is_named_where_limits_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    units = {"containerd.service": "containers.containerd.limits"}
    assert Containerd().list_units(POLICY) == units
    assert Containerd().list_units(ContainerPolicy({}, tasks=5)) == {}
    monkeypatch.setattr(check, "check_containerd", lambda *words: words)
    found: Any = Containerd().check(POLICY, CheckOptions(canary="never"), Look())
    assert found[:2] == (POLICY, "never")
