# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's Docker is, is gathered from its evidence, and what is not sure is not said."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.finding import FAIL, Observation, Requirement, judge
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.docker import diagnose as explain_docker
from mlhost_limits.docker import explain as trace_docker
from mlhost_limits.docker import unit_read
from mlhost_limits.docker.api_read import Container, Daemon
from mlhost_limits.docker.compose import Compose
from mlhost_limits.docker.diagnose import SeenContainer, SeenDocker, describe, find_dead, gather
from mlhost_limits.docker.dockerd_flags import Flag
from mlhost_limits.docker.read import DockerRead, UnitRead
from mlhost_limits.host.look import Look, read_limits, read_process
from mlhost_limits.kernel.host_read import KernelRead
from mlhost_limits.schema import load_policy

POLICY: Any = load_policy(None, "training").get("docker")
NEW = "new-container:docker"
MEMLOCK = "memlock"
SILENT = '{"default-shm-size": "8G"}'


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Look:
    """A host whose dockerd and containerd are this process, without any unit."""
    monkeypatch.setattr(explain_docker, "read_unit_stated", lambda *_words: UnitRead({}, ()))
    found = Look()
    dockerd = found.at(DockerRead)
    me = read_process(os.getpid())._replace(cgroup="0::/system.slice/docker.service")
    kernel = found.at(KernelRead)
    kernel.nr_open, kernel.sysctl_files = 1048576, {}
    dockerd.daemon = Daemon(me, [])
    dockerd.containerd = me._replace(cgroup="0::/system.slice/containerd.service")
    dockerd.flags, dockerd.config, dockerd.version = (), SILENT, "20.10.24"
    dockerd.config_path = str(tmp_path / "daemon.json")
    dockerd.config_changed = 1.0
    dockerd.rootless = ()
    return found


def test_what_is_inherited_is_what_was_measured(look: Look) -> None:
    """Of what is possible the measured value is kept; one that is impossible changes nothing."""
    mine = read_limits("self")[MEMLOCK]
    scene = gather(SeenDocker([], {MEMLOCK: mine}), POLICY, look)
    assert scene is not None
    assert scene.restart.base[MEMLOCK] == scene.boot.base[MEMLOCK] == (mine,)
    odd = gather(SeenDocker([], {MEMLOCK: Rlimit(4711, 4711)}), POLICY, look)
    assert odd is not None
    assert odd.restart.base[MEMLOCK] == (mine,)


@pytest.mark.parametrize(
    ("name", "value"),
    [("config_changed", 2.0**40), ("flags", (Flag("debug", "", "/u", 3),))],
)
def test_nothing_is_measured_of_what_comes(look: Look, name: str, value: Any) -> None:
    """Where dockerd runs with something else than its files say, its files are not its canary."""
    setattr(look.at(DockerRead), name, value)
    scene = gather(SeenDocker([], {"nofile": Rlimit(1024, 2**40)}), POLICY, look)
    assert scene is not None
    assert scene.differs
    assert Rlimit(1024, 2**40) not in scene.restart.base["nofile"]


def test_a_containerd_that_hides_says_nothing(look: Look) -> None:
    look.at(DockerRead).containerd = None
    scene = gather(SeenDocker([]), POLICY, look)
    assert scene is not None
    assert (scene.restart.base, scene.site.parent) == ({}, None)


def test_files_that_cannot_be_understood_explain_nothing(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The findings come back as they are."""

    def fail(_read: DockerRead) -> str:
        raise ValueError("no UTF-8")

    monkeypatch.setattr(DockerRead, "config", property(fail))
    broken = DockerRead()
    broken.daemon, broken.flags, broken.config_path = look.at(DockerRead).daemon, (), "/x"
    look = look.seen_by(DockerRead, broken)
    finding = judge(Requirement(NEW, MEMLOCK, "soft", 9), Observation(1, ""))
    seen = SeenDocker([finding], {MEMLOCK: Rlimit(1, 1)})
    assert list(explain_docker.explain_docker(seen, POLICY, look)) == [finding]
    assert find_dead(NEW, POLICY, look) is None


@pytest.mark.parametrize(("config", "codes"), [("{", ["docker-dockerd-refuses"]), (SILENT, [])])
def test_a_dockerd_that_is_down_may_be_blamed(
    look: Look, monkeypatch: pytest.MonkeyPatch, config: str, codes: list[str]
) -> None:
    """Where its files say why: that is a failure. Else, or without Docker, nothing is known."""
    monkeypatch.setattr(unit_read, "find_dockerd", lambda: "/usr/sbin/dockerd")
    look.at(DockerRead).daemon = None
    look.at(DockerRead).config = config
    found = find_dead(NEW, POLICY, look)
    assert [cause.code for cause in found.causes] == codes if found else codes == []
    assert found is None or found.status == FAIL
    monkeypatch.setattr(unit_read, "find_dockerd", lambda: None)
    assert find_dead(NEW, POLICY, look) is None


DETAILS = {
    "Id": "c0ffee",
    "State": {"StartedAt": "2026-11-21T17:47:18.83391374Z"},
    "Mounts": [{"Destination": "/data"}],
    "HostConfig": {
        "Ulimits": [{"Name": MEMLOCK, "Hard": -1, "Soft": -1}],
        "ShmSize": 67108864,
        "IpcMode": "private",
        "RestartPolicy": {"Name": "always", "MaximumRetryCount": 0},
        "AutoRemove": False,
        "Tmpfs": {"/dev/shm/": "size=1g"},
    },
}  # As Docker 20.10 answers to inspect, cut.


def test_a_container_is_described_by_its_engine(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    seen = SeenContainer(Container("c0ffee", "job", os.getpid(), "tiny", DETAILS), {}, [])
    running = describe(seen, look.at(DockerRead))
    monkeypatch.undo()
    time.tzset()
    assert running.merged == {MEMLOCK: Rlimit(UNLIMITED, UNLIMITED)}
    assert (running.since, running.ipc) == ("2026-11-21T19:47:18", "private")
    assert (running.shm_size, running.mounts_shm, running.starts_at_boot) == (2**26, True, True)
    bare = describe(
        SeenContainer(Container("c0ffee", "job", 1, "tiny"), {}, []), look.at(DockerRead)
    )
    assert (bare.since, bare.merged, bare.mounts_shm) == ("", {}, False)


def test_a_chain_is_shown(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    """From fs.nr_open to a new container, and to one that runs, whose own limit stands in it."""
    limits = {"nofile": Rlimit(700, 800), "shm_size": Rlimit(2**26, 2**26)}
    container = Container("c0ffee", "job", os.getpid(), "tiny", DETAILS)
    seen = SeenContainer(container, limits, [])
    monkeypatch.setattr(trace_docker, "judge_new", lambda *_words: SeenDocker([], limits))
    monkeypatch.setattr(trace_docker, "look_at_running", lambda *_words: [seen])
    monkeypatch.setattr(trace_docker, "read_containers", lambda _address: [])
    monkeypatch.setattr(explain_docker, "read_spec_limits", lambda _id: limits)
    look.at(
        DockerRead
    ).config = '{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 9, "Soft": 8}}}'
    monkeypatch.setattr(
        DockerRead, "read_own_ulimits", lambda _self, _details: {"nofile": Rlimit(700, 800)}
    )
    new = trace_docker.trace_docker(NEW, "nofile", look)
    assert [link.name for link in new] == [
        *("kernel", "containerd's unit", "containerd"),
        *("stated", "predicted", "dockerd", "container"),
    ]
    assert [link.value for link in new if link.name in ("stated", "container")] == [
        "8:9",
        "700:800",
    ]
    running = trace_docker.trace_docker("container:docker/job", "nofile", look)
    assert [link.name for link in running[-3:]] == ["--ulimit", "started with", "container"]
    assert running[-3].source == "job's own"
    made = Compose("a", (("/c.yml", "services:\n  a:\n    ulimits:\n      nofile: 700\n"),))
    monkeypatch.setattr(DockerRead, "read_compose", lambda _self, _details: made)
    running = trace_docker.trace_docker("container:docker/job", "nofile", look)
    assert running[-3].source == 'job\'s own, by /c.yml:4 "nofile: 700"'
    shm = trace_docker.trace_docker("container:docker/job", "shm_size", look)
    assert [link.value for link in shm] == ["64MiB", "", "67108864", "64MiB", "64MiB"]


@pytest.mark.parametrize(
    ("place", "item", "says"),
    [
        (NEW, "speed", "'speed' is not a limit; accepted are cpu,"),
        ("container:docker/none", "nofile", "is not a place to explain; accepted are"),
    ],
)
def test_what_is_not_there_has_no_chain(
    look: Look, monkeypatch: pytest.MonkeyPatch, place: str, item: str, says: str
) -> None:
    monkeypatch.setattr(trace_docker, "read_containers", lambda _address: [])
    with pytest.raises(ValueError, match=says):
        trace_docker.trace_docker(place, item, look)


def test_without_dockerd_there_is_no_chain(look: Look) -> None:
    look.at(DockerRead).daemon = None
    with pytest.raises(ValueError, match="no dockerd is running"):
        trace_docker.trace_docker(NEW, "nofile", look)
