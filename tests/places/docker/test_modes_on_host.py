# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker as few hosts have it is measured and explained as any other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry
from tests.oracle.record import EVERYTHING

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(not EVERYTHING, reason="a long look, with MLHOST_ALL=1"),
]

CONFIG = "/etc/docker/daemon.json"
RESTART = "systemctl reset-failed docker; systemctl restart docker"
NEW, JOB = "new-container:docker", "container:docker/job"
HEALTHY = """\
{
  "default-ulimits": {
    "nofile": {"Name": "nofile", "Hard": 1048576, "Soft": 65536},
    "memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}
  },
  "default-shm-size": "8G"
}
"""
"""What the library itself writes on a host without daemon.json."""

FILES = ("look_at_containers.py", "provision_docker.py")
SLEEP = "tiny /busybox sleep 100000 >/dev/null"
ENSURE_TINY = (
    "docker image inspect tiny >/dev/null 2>&1 || tar -C /bin -c busybox | docker import - tiny"
)
EMPTY = "docker ps -aq | xargs -r docker rm -f >/dev/null"
LOWER = "sed -i 's/65536/1024/'"
# What is with it where /etc/docker/daemon.json has these keys too, and where it may be had.
MODES = {
    "userns-remap and live-restore": '"userns-remap": "default", "live-restore": true',
    "the image store of containerd": '"features": {"containerd-snapshotter": true}',
}


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def host(release: str) -> Iterator[Host]:
    with guest.running(release) as fresh:
        carry(fresh, {name: Path(__file__).with_name(name) for name in FILES})
        write = f"mkdir -p /etc/docker; cat > {CONFIG} << 'END'\n{HEALTHY}END\n"
        fresh.ssh(f"{write}{RESTART}", timeout=600)
        yield fresh


def run(host: Host, program: str, first: str = "true") -> Any:
    """Do something on the host, then run a program of ours there, which prints JSON."""
    line = f"{first}\nPYTHONPATH=/opt python3 /opt/{program}"
    done = host.ssh(line, timeout=900)
    print(done.stdout[-4000:], done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def look(host: Host, first: str = "true") -> dict[str, Any]:
    found: dict[str, Any] = run(host, FILES[0], first)
    print("\n".join(found["lines"]))
    return found


def at(found: dict[str, Any], place: str) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["place"] == place]


def collect_codes(found: dict[str, Any], place: str) -> set[str]:
    return {cause["code"] for one in at(found, place) for cause in one["causes"]}


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_changes_nothing_of_what_is_said(host: Host, release: str, mode: str) -> None:
    """Containers and a new one pass, and one with a limit of its own is told apart, and traced."""
    if release == "bookworm" and "snapshotter" in MODES[mode]:
        pytest.skip("Docker 20.10 has no such image store")
    edit = f"sed -i '1s/{{/{{{MODES[mode]},/' {CONFIG}"
    start = f"docker run -d --name job {SLEEP}; docker run -d --name own --ulimit nofile=700:800 {SLEEP}"
    try:
        found = look(
            host, f"{EMPTY}; cp {CONFIG} /root/kept; {edit}; {RESTART}\n{ENSURE_TINY}\n{start}"
        )
        for place in (JOB, NEW):
            assert {one["status"] for one in at(found, place)} == {"pass"}
        assert collect_codes(found, "container:docker/own") == {"docker-own-ulimit"}
        assert not collect_codes(found, JOB)
        traced = host.ssh(
            "cd /opt; PYTHONPATH=/opt python3 -m mlhost_limits.cli explain container:docker/own nofile;"
            " PYTHONPATH=/opt python3 -m mlhost_limits.cli explain"
            " process:$(docker inspect -f '{{.State.Pid}}' own) nofile"
        ).stdout
        assert "700:800  own's own" in traced
        assert "it lives in docker/" in " ".join(traced.split())
    finally:
        host.ssh(f"{EMPTY}; cp /root/kept {CONFIG}; {RESTART}", timeout=600)


def test_containers_that_live_on_keep_their_limits(host: Host) -> None:
    """A restart by a run stops none; each is listed, and blamed on its age until it is restarted."""
    edit = f"{LOWER} {CONFIG}; {RESTART}"
    start = f"{EMPTY}; {edit}\n{ENSURE_TINY}\ndocker run -d --name job {SLEEP}"
    pending = f"sed -i '1s/{{/{{\"live-restore\": true,/' {CONFIG}"
    try:
        found = look(host, f"{start}; {pending}")
        assert "which stops the running containers" in "\n".join(found["lines"]).replace(
            "\n     ", " "
        )
        pid = "docker inspect -f '{{.State.Pid}}' job"
        before = host.ssh(f"systemctl reload docker; {pid}").stdout
        told = run(host, FILES[1], f"cp {CONFIG} /root/with-key")
        assert told["restarted"] == ["docker.service"]
        assert [one.partition(" (pid")[0] for one in told["old_limits"]] == ["container job"]
        assert host.ssh(pid).stdout == before
        found = look(host)
        assert collect_codes(found, JOB) == {"docker-container-older"}
        assert {one["status"] for one in at(found, NEW)} == {"pass"}
        after = look(host, "docker restart -t 0 job")
        assert {one["status"] for one in after["findings"]} == {"pass"}
    finally:
        host.ssh(f"{EMPTY}; rm -f {CONFIG}", timeout=600)
