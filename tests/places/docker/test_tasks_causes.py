# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of Docker's containers: its own option, the units above it, and what a restart gives."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from mlhost_limits.containers.findings import Canary, ContainerLimits
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.containers.tasks import split_levels
from mlhost_limits.core.cause import Cause
from mlhost_limits.core.finding import Finding, Observation, Requirement, judge
from mlhost_limits.core.process_owner import MAKER
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.docker import diagnose, engine_check, measure
from mlhost_limits.docker import explain as trace_docker
from mlhost_limits.docker.api_read import Container, Daemon
from mlhost_limits.docker.compose import Compose, blame_tasks
from mlhost_limits.docker.diagnose import SeenContainer, SeenDocker, explain_docker
from mlhost_limits.docker.read import DockerRead, UnitRead
from mlhost_limits.docker.running import Running, find_tasks_causes
from mlhost_limits.host.look import Look, read_process
from mlhost_limits.kernel.host_read import KernelRead
from mlhost_limits.services import diagnose as services
from mlhost_limits.services import explain as trace_services
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.tasks import Level
from mlhost_limits.systemd.unit_file import Source

from tests.worlds.distributions import DEBIAN

ID = 64 * "a"
OWN = Level(f"docker-{ID}.scope", f"/sys/docker-{ID}.scope/pids.max", 1500)
SLICE = Level("system.slice", "/sys/system.slice/pids.max", UNLIMITED)
NEW, JOB = (
    Requirement(place, "tasks", "value", 500)
    for place in ("new-container:docker", "container:docker/job")
)
FEW = Source("/etc/systemd/system/system.slice.d/70-few.conf", "[Slice]\nTasksMax=100\n")
FEW_SCOPES = Source("/etc/systemd/system/docker-.scope.d/70-few.conf", "[Scope]\nTasksMax=100\n")
POLICY = ContainerPolicy({}, None, 500)

Host = Callable[[str, Source], None]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host that holds 10000 tasks, of which a unit without files has 1500; add drop-ins."""
    files: dict[str, Files] = {}
    for module in (services, trace_services):
        monkeypatch.setattr(module, "read_most_tasks", lambda: 10000)
    monkeypatch.setattr(
        services, "read_sources", lambda unit: files.get(unit, Files(None, vendor=DEBIAN))
    )
    return lambda unit, dropin: files.update({unit: Files(None, (dropin,), vendor=DEBIAN)})


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    monkeypatch.setattr(diagnose, "read_unit_stated", lambda *_words: UnitRead({}, ()))
    monkeypatch.setattr(diagnose, "read_spec_limits", lambda _id: {})
    found = Look()
    dockerd, kernel = found.at(DockerRead), found.at(KernelRead)
    me = read_process(os.getpid())._replace(cgroup="0::/system.slice/docker.service")
    kernel.nr_open, kernel.sysctl_files = 1048576, {}
    dockerd.daemon, dockerd.containerd = Daemon(me, []), me
    dockerd.flags, dockerd.config, dockerd.version, dockerd.rootless = (), "{}", "20.10.24", ()
    dockerd.config_path, dockerd.config_changed = "/none", 1.0
    return found


def tell_new(look: Look, *levels: Level) -> Finding:
    lowest = min(levels, key=lambda one: one.most)
    finding = judge(NEW, Observation(lowest.most, lowest.path))
    (told,) = explain_docker(SeenDocker([finding], levels=levels), POLICY, look)
    return told


def tell_running(look: Look, limit: int | None, *levels: Level) -> Finding:
    lowest = min(levels, key=lambda one: one.most)
    finding = judge(JOB, Observation(lowest.most, lowest.path))
    container = Container(ID, "job", os.getpid(), "tiny", {"HostConfig": {"PidsLimit": limit}})
    seen = SeenContainer(container, {}, [finding], levels)
    (told,) = explain_docker(SeenDocker([], running=[seen]), POLICY, look)
    return told


def list_codes(finding: Finding) -> list[str]:
    return [cause.code for cause in finding.causes]


def test_a_new_container_has_systemd_s_default_for_its_scope(host: Host, look: Look) -> None:
    told = tell_new(look, OWN, SLICE)
    assert (told.status, told.causes, told.outlook[1:]) == ("pass", (), ("pass", "pass"))
    few = tell_new(look, OWN._replace(most=100), SLICE)
    assert list_codes(few) == ["tasks-not-in-force"]
    host("docker-.scope", FEW_SCOPES)
    few = tell_new(look, OWN._replace(most=100), SLICE)
    assert list_codes(few) == ["tasks-unit-too-low"]
    (cause,) = few.causes
    assert cause.at
    assert cause.at.place == f"{FEW_SCOPES.path}:2"
    site = "/etc/systemd/system/docker-.scope.d/95-site.conf"
    assert cause.remedy.text == f'state "TasksMax=500" in {site}'


def test_a_slice_above_is_blamed_and_what_it_will_give_is_told(host: Host, look: Look) -> None:
    host("system.slice", FEW)
    few = tell_new(look, OWN, SLICE._replace(most=100))
    assert (list_codes(few), few.outlook[1:]) == (["tasks-slice-too-low"], ("fail", "fail"))
    later = tell_new(look, OWN, SLICE)
    assert (later.status, later.fails_later) == ("pass", True)
    assert list_codes(later) == ["tasks-slice-too-low"]


@pytest.mark.parametrize(
    ("limit", "own", "codes", "later"),
    [
        (None, 1500, [], "pass"),
        (None, 100, ["tasks-not-in-force"], "pass"),
        (100, 100, ["docker-own-pids-limit"], "fail"),
        (499, 100, ["docker-own-pids-limit"], "fail"),
        (500, 100, ["docker-pids-changed"], "pass"),
        (5000, 100, ["docker-pids-changed"], "pass"),
        (0, 100, ["docker-pids-changed"], "pass"),
        (5000, 5000, [], "pass"),
    ],
)
def test_a_running_container_is_blamed_on_its_own_option(
    host: Host, look: Look, limit: int | None, own: int, codes: list[str], later: str
) -> None:
    told = tell_running(look, limit, OWN._replace(most=own), SLICE)
    assert (list_codes(told), told.outlook[1:]) == (codes, (later, later))
    if codes and codes[0].startswith("docker-"):
        command = ("docker", "update", "--pids-limit=500", "job")
        assert told.causes[0].remedy.commands == (command,)
        assert told.owner == MAKER


def test_a_container_of_root_s_slice_is_root_s(host: Host, look: Look) -> None:
    host("system.slice", FEW)
    told = tell_running(look, 100, OWN._replace(most=100), SLICE._replace(most=100))
    assert list_codes(told) == ["docker-own-pids-limit", "tasks-slice-too-low"]
    assert told.owner == ""


def test_no_bound_is_written_as_docker_reads_it() -> None:
    wanted = JOB._replace(minimum=UNLIMITED)
    bounds = split_levels([OWN._replace(most=100)], ID)
    (cause,) = find_tasks_causes(wanted, bounds, Running("job", {}, tasks=100))
    assert cause.remedy.commands == (("docker", "update", "--pids-limit=-1", "job"),)


def blame(*texts: str | None, has: int = 100) -> Cause:
    compose = Compose("train", tuple((f"/srv/{n}.yml", text) for n, text in enumerate(texts)))
    return blame_tasks(compose, "job", has, 500)


LINE = "services:\n  train:\n    pids_limit: 100\n"
DEPLOY = (
    "services:\n  train:\n    deploy:\n      resources:\n        limits:\n          pids: 100\n"
)


@pytest.mark.parametrize(
    ("cause", "code", "place"),
    [
        (blame(LINE), "docker-compose-states", "/srv/0.yml:3"),
        (blame(DEPLOY), "docker-compose-states", "/srv/0.yml:6"),
        (blame("services:\n  train:\n    image: x\n", DEPLOY), "docker-compose-states", "/srv/1.yml:6"),
        (blame(LINE, has=50), "docker-compose-not-applied", "/srv/0.yml:3"),
        (blame("services:\n  train:\n    image: x\n"), "docker-compose-not-applied", ""),
        (blame(None), "docker-compose-states", ""),
        (blame("services: {train: {pids_limit: 100}}\n"), "docker-compose-states", ""),
    ],
)  # fmt: skip
def test_the_line_of_a_compose_file(cause: Cause, code: str, place: str) -> None:
    assert (cause.code, cause.at.place if cause.at else "") == (code, place)
    assert "docker compose up -d train" in (cause.remedy.then, cause.remedy.text[-26:])


def test_a_container_of_compose_is_left_to_its_file() -> None:
    compose = Compose("train", (("/srv/c.yml", LINE),))
    bounds = split_levels([OWN._replace(most=100)], ID)
    (cause,) = find_tasks_causes(JOB, bounds, Running("job", {}, compose=compose, tasks=100))
    assert (cause.code, cause.remedy.text) == ("docker-compose-states", "make it 500 there")


class Kept:
    """A cache in memory."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}

    def read(self, key: str) -> object | None:
        return self.entries.get(key)

    def keep(self, key: str, content: object) -> None:
        self.entries[key] = content


def test_a_canary_that_falls_short_is_started_again(
    host: Host, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own bound changes without a new dockerd; the units above it are read each time."""
    own, started = [100], []

    def run(_address: str) -> Canary:
        started.append(own[0])
        return Canary(ContainerLimits({}, None, (OWN._replace(most=own[0]), SLICE)))

    monkeypatch.setattr("mlhost_limits.docker.api_read.read_canary_key", lambda *_words: "")
    monkeypatch.setattr(measure, "run_canary", run)
    monkeypatch.setattr(DockerRead, "read_running_config", lambda _self: b"")
    cache, dockerd = Kept(), look.at(DockerRead)

    def find() -> list[object]:
        seen = engine_check.judge_new(POLICY, dockerd, False, NEW.place, cache)
        return [one.observation.value for one in seen.new]

    assert (find(), started) == ([100], [100])
    own[0] = 2000
    assert (find(), find(), started) == ([2000], [2000], [100, 2000])
    monkeypatch.setattr(
        engine_check, "read_again", lambda levels: [*list(levels)[:1], SLICE._replace(most=7)]
    )
    assert (find(), started) == ([7], [100, 2000])
    for other in ({"when": 1, "limits": {}}, 7, "x"):  # As an earlier version kept it, or nobody.
        cache.entries[""], started[:] = other, []
        assert (find(), started) == ([7], [2000])
    host("docker-.scope", FEW_SCOPES)
    assert (find(), started) == ([7], [2000, 2000])


def test_a_chain_of_tasks_is_shown(host: Host, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    host("system.slice", FEW)
    details = {"HostConfig": {"PidsLimit": 700}}
    container = Container(ID, "job", os.getpid(), "tiny", details)
    seen = SeenContainer(container, {}, [], [OWN._replace(most=700), SLICE])
    monkeypatch.setattr(
        trace_docker, "judge_new", lambda *_words: SeenDocker([], levels=[OWN, SLICE])
    )
    monkeypatch.setattr(trace_docker, "look_at_running", lambda *_words: [seen])
    monkeypatch.setattr(trace_docker, "read_containers", lambda _address: [])
    new = trace_docker.trace_docker("new-container:docker", "tasks", look)
    assert [(link.name, link.value) for link in new] == [
        *(("kernel", "10000"), ("system.slice", "100"), ("cgroup", "unlimited")),
        *(("docker-.scope", "1500"), ("cgroup", "1500"), ("container", "1500")),
    ]
    running = trace_docker.trace_docker("container:docker/job", "tasks", look)
    assert [(link.name, link.value) for link in running[3:]] == [
        ("--pids-limit", "700"),
        ("container", "700"),
    ]
