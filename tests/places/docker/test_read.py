# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides the limits of containers is read where it stands, and only there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.docker import read as docker_evidence
from mlhost_limits.docker.api_read import Daemon
from mlhost_limits.docker.dockerd_flags import Flag
from mlhost_limits.docker.read import (
    DockerRead,
    find_stated_by_people,
    find_unit,
    parse_ulimits,
    read_spec_limits,
    read_unit_stated,
)
from mlhost_limits.host.files import read_change
from mlhost_limits.host.look import Process

# As inspect answers on Docker 20.10, and as its hostconfig.json stands on the disk.
MERGED = [{"Name": "memlock", "Hard": -1, "Soft": -1}, {"Name": "nofile", "Hard": 800, "Soft": 700}]
OWN = [{"Name": "nofile", "Hard": 800, "Soft": 700}]
from mlhost_limits.systemd.unit_file import Source
from mlhost_limits.systemd.unit_read import UnitFiles, read_unit_files

MAIN = "[Service]\nLimitNOFILE=infinity\nLimitCORE=infinity\n"


def make_process(cgroup: str) -> Process:
    return Process(253, "dockerd", 0, cgroup, 1)


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("0::/system.slice/docker.service", "docker.service"),
        ("0::/system.slice/docker.service/init", "docker.service"),
        ("12:pids:/x\n1:name=systemd:/system.slice/containerd.service", "containerd.service"),
        ("0::/user.slice/user-0.slice/session-1.scope", ""),
    ],
)
def test_the_unit_of_a_process_is_in_its_cgroup(cgroup: str, unit: str) -> None:
    assert find_unit(make_process(cgroup)) == unit


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_limits_of_a_unit_have_lines(tmp_path: Path) -> None:
    """A drop-in beats the unit, the manager's defaults stand below; people write in /etc."""
    write(tmp_path, "usr/lib/systemd/system/docker.service", MAIN)
    dropin = "etc/systemd/system/docker.service.d/x.conf"
    write(tmp_path, dropin, "[Service]\nLimitNOFILE=1024:2048\n")
    write(tmp_path, "etc/systemd/system.conf", "[Manager]\nDefaultLimitMEMLOCK=1G\n")
    stated, paths = read_unit_stated("docker.service", root=str(tmp_path))
    assert {item: (one.limit, one.at.place) for item, one in stated.items()} == {
        "nofile": (Rlimit(1024, 2048), f"/{dropin}:2"),
        "core": (
            Rlimit(UNLIMITED, UNLIMITED),
            "/usr/lib/systemd/system/docker.service:3",
        ),
        "memlock": (Rlimit(2**30, 2**30), "/etc/systemd/system.conf:2"),
    }
    assert {f"/{dropin}", "/etc/systemd/system", "/etc/systemd/system/docker.service.d"} <= {*paths}
    files = read_unit_files("docker.service", str(tmp_path))
    people = find_stated_by_people("docker.service", files)
    assert list(people) == ["nofile"]
    assert read_unit_stated("none.service", root=str(tmp_path)).stated == {}


def test_the_engine_s_list_of_limits() -> None:
    assert parse_ulimits(MERGED) == {
        "memlock": Rlimit(UNLIMITED, UNLIMITED),
        "nofile": Rlimit(700, 800),
    }
    assert parse_ulimits(None) == {}


def make_docker(flags: list[Flag], config: str | None = None) -> DockerRead:
    look = DockerRead()
    look.daemon = Daemon(make_process("0::/system.slice/docker.service"), flags)
    look.config = config
    return look


def test_a_container_s_own_limits_stand_in_its_own_file(tmp_path: Path) -> None:
    """In the folder that its log, its host name or the data root tells."""
    write(tmp_path, "containers/c0ffee/hostconfig.json", json.dumps({"Ulimits": OWN}))
    folder = f"{tmp_path}/containers/c0ffee"
    asked = [
        (make_docker([]), {"Id": "c0ffee", "LogPath": f"{folder}/c0ffee-json.log"}),
        (make_docker([]), {"Id": "c0ffee", "LogPath": "", "HostnamePath": f"{folder}/hostname"}),
        (make_docker([Flag("data-root", str(tmp_path), "", 0)]), {"Id": "c0ffee"}),
        (make_docker([], json.dumps({"data-root": str(tmp_path)})), {"Id": "c0ffee"}),
    ]
    for look, details in asked:
        assert look.read_own_ulimits(details) == {"nofile": Rlimit(700, 800)}
    other = {"Id": "beef", "HostnamePath": f"{folder}/hostname"}  # --net=container:c0ffee
    assert make_docker([], "{").read_own_ulimits(other) is None


def test_a_file_that_is_not_read_yet_lets_no_container_live_on() -> None:
    """What daemon.json says of live-restore counts for nothing; who does not answer stops them."""
    look = make_docker([Flag("live-restore", "", "", 0)], '{"live-restore": true}')
    look.address = "/nonexistent"
    assert look.live_restore is False


def test_what_a_container_was_started_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """containerd keeps the specification while the container runs."""
    rlimits = [
        {"type": "RLIMIT_NOFILE", "hard": 800, "soft": 700},
        {"type": "RLIMIT_NEW", "hard": 1, "soft": 1},
    ]
    spec = {"process": {"rlimits": rlimits}}
    write(tmp_path, "io.containerd.runtime.v2.task/moby/c0ffee/config.json", json.dumps(spec))
    write(tmp_path, "io.containerd.runtime.v2.task/moby/bare/config.json", '{"process": {}}')
    write(tmp_path, "io.containerd.runtime.v2.task/moby/list/config.json", "[]")
    monkeypatch.setattr(
        docker_evidence, "_STATES", (f"{tmp_path}/none", f"{tmp_path}/io.containerd.runtime.v*")
    )
    assert read_spec_limits("c0ffee") == {"nofile": Rlimit(700, 800)}
    assert read_spec_limits("bare") == {}
    assert read_spec_limits("list") is None
    assert read_spec_limits("beef") is None


def test_a_file_that_was_put_back_with_its_time_has_changed(tmp_path: Path) -> None:
    """Its time of change is the kernel's own, which cp -a does not carry over."""
    write(tmp_path, "a", "")
    assert read_change(str(tmp_path / "a")) > 0
    assert read_change(str(tmp_path / "b")) == 0


LABEL = "com.docker.compose"


def test_a_container_of_compose_names_its_files(tmp_path: Path) -> None:
    """Those of its labels, by the folder of the project; one that cannot be read has no text."""
    (tmp_path / "compose.yml").write_text("services: {}\n")
    (tmp_path / "latin.yml").write_bytes(b"\xe9\n")
    labels = {
        f"{LABEL}.service": "train",
        f"{LABEL}.project.config_files": f"compose.yml,{tmp_path}/latin.yml,/gone/x.yml",
        f"{LABEL}.project.working_dir": str(tmp_path),
    }
    found = DockerRead().read_compose({"Config": {"Labels": labels}})
    assert found is not None
    assert found.service == "train"
    assert found.files == (
        (f"{tmp_path}/compose.yml", "services: {}\n"),
        (f"{tmp_path}/latin.yml", None),
        ("/gone/x.yml", None),
    )
    del labels[f"{LABEL}.project.working_dir"]
    nowhere = DockerRead().read_compose({"Config": {"Labels": labels}})
    assert nowhere is not None
    assert nowhere.files[0] == ("compose.yml", None)


@pytest.mark.parametrize(
    "details", [{}, {"Config": None}, {"Config": {"Labels": {f"{LABEL}.service": "a"}}}]
)
def test_a_container_of_nobody_has_no_compose(details: dict[str, Any]) -> None:
    assert DockerRead().read_compose(details) is None


@pytest.mark.parametrize(
    ("starts", "flags"),
    [
        ("ExecStart=/usr/bin/dockerd --debug\n", ("debug",)),
        ("ExecStart=-/usr/bin/dockerd\n", ()),
        ("ExecStart=/usr/bin/dockerd --debug\nExecStart=\nExecStart=/usr/bin/dockerd\n", ()),
        ("ExecStart=/usr/bin/snap\n", ("default-ulimit",)),
    ],
)
def test_dockerd_s_next_start_has_the_flags_of_its_unit_alone(
    starts: str, flags: tuple[str, ...]
) -> None:
    read = DockerRead()
    main = Source("/etc/systemd/system/docker.service", f"[Service]\n{starts}")
    given = (Flag("default-ulimit", "nofile=65536", "command line", 0),)
    read.__dict__.update(unit="docker.service", unit_files=UnitFiles(main, []), running_flags=given)
    assert tuple(flag.name for flag in read.flags) == flags
