# SPDX-License-Identifier: GPL-3.0-or-later
"""Where Docker is half there or not at all, a run says so, and what it wrote counts later."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry
from tests.oracle.record import EVERYTHING

pytestmark = pytest.mark.host

STOP = "systemctl stop docker.socket docker"
AWAY = "systemctl stop docker.socket docker containerd; mkdir /root/away; cd /root/away"
PARTS = "/usr/sbin/dockerd /usr/bin/docker /usr/bin/containerd /lib/systemd/system/docker.service"
CONFIG = "/etc/docker/daemon.json"
NO_DOCKERD = "no dockerd is running on this host until "


class State(NamedTuple):
    """Docker as a host may have it: how it comes to that, and how it is all there again.

    ``notes`wait` is what it waits for, ``notes`` what a run says besides; ``refused`` is why
    nothing is written.
    """

    name: str
    make: str
    unmake: str
    wait: str = ""
    notes: tuple[str, ...] = ()
    refused: str = ""


def swap(path: str, put: str) -> tuple[str, str]:
    """Return how something else comes into the place of a file, and how the file comes back."""
    return (
        f"{STOP}; mv {path} /root/away; {put}",
        f"rm -rf {path}; mv /root/away {path}",
    )


STATES = [
    State("stopped", STOP, "true", "docker.service is started"),
    State("stopped, and its socket listens", "systemctl stop docker", "true",
          "docker.service is started"),
    State("masked and stopped", f"{STOP}; systemctl mask -q docker docker.socket",
          "systemctl unmask -q docker docker.socket", "docker.service is unmasked and started"),
    State("installed later", f"{AWAY}; mv {PARTS} .; systemctl daemon-reload; rm -r /etc/docker",
          "cd /root/away; mv dockerd /usr/sbin; mv docker.service /lib/systemd/system;"
          " mv docker containerd /usr/bin; rmdir /root/away; systemctl daemon-reload;"
          " systemctl start containerd",
          "Docker is installed"),
    State("the program is gone, and it is stopped", *swap("/usr/sbin/dockerd", "true"),
          "Docker is installed"),
    State("half of the program is there",
          *swap("/usr/sbin/dockerd",
                "printf '\\177ELF' > /usr/sbin/dockerd; chmod +x /usr/sbin/dockerd"),
          "dockerd can be run (/usr/sbin/dockerd: Exec format error)",
          (f"{CONFIG}: dockerd could not be asked whether it accepts it"
           " (/usr/sbin/dockerd: Exec format error)",)),
    State("a version that nobody knows",
          *swap("/usr/sbin/dockerd",
                "printf '#!/bin/sh\\necho Docker version dev, build unknown\\n' >"
                " /usr/sbin/dockerd; chmod +x /usr/sbin/dockerd"),
          "docker.service is started"),
    State("without its unit",
          f"{STOP}; mv /lib/systemd/system/docker.service /etc/init.d/docker /root; systemctl daemon-reload",
          "mv /root/docker.service /lib/systemd/system; mv /root/docker /etc/init.d; systemctl daemon-reload",
          "dockerd is started; docker.service has no file"),
    State("masked while it runs", "systemctl mask -q docker", "systemctl unmask -q docker",
          refused=f"{CONFIG}: needs a restart, and docker.service is masked, so that it cannot be"
          " restarted"),
    State("the program is gone while it runs", "mv /usr/sbin/dockerd /root",
          "mv /root/dockerd /usr/sbin",
          refused=f"{CONFIG}: needs a restart, and the program of dockerd is gone, which would not"
          " start again"),
    State("started by hand", f"{STOP}; setsid dockerd >/root/log 2>&1 & "
          "until docker version >/dev/null 2>&1; do sleep 1; done",
          "kill $(cat /run/docker.pid); while [ -e /run/docker.pid ]; do sleep 1; done",
          refused=f"{CONFIG}: needs a restart, and dockerd (pid PID) was not started by systemd,"
          " which cannot restart it"),
]  # fmt: skip


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running() as fresh:
        name = "provision_docker_once.py"
        carry(fresh, {name: Path(__file__).with_name(name)})
        yield fresh


@pytest.mark.parametrize(
    "state", STATES if EVERYTHING else STATES[3::5], ids=lambda state: state.name
)
def test_each_state_is_said_and_the_file_counts_later(host: Host, state: State) -> None:
    """Never a crash; unknown with the reason; once dockerd runs, containers have their limits."""
    done = host.run(
        "PYTHONPATH=/opt python3 /opt/provision_docker_once.py"
        f" {shlex.quote(state.make)} {shlex.quote(state.unmake)}",
        timeout=900,
    )
    print(done.stdout, done.stderr)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if state.refused:
        assert hide_pid(said["done"]) == {"refused": state.refused}
        assert {one[0] for one in said["now"]} == {"pass", "fail"}
        return
    wait = f"{CONFIG}: takes effect once {state.wait}"
    assert CONFIG in said["done"].pop("files")
    assert said["done"] == {"notes": [wait, *state.notes], "restarted": [], "in_effect": []}
    assert {(one[0], one[2]) for one in said["now"]} == {("unknown", NO_DOCKERD + state.wait)}
    assert {one[0] for one in said["then"]} == {"pass"}
    assert said["absent"]["restarted"] == ["docker.service"]


def hide_pid(said: dict[str, str]) -> dict[str, str]:

    return {key: re.sub(r"pid \d+", "pid PID", text) for key, text in said.items()}
