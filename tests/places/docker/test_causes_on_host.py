"""Each fault of containers is named with its line, and the printed commands put it right."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry
from tests.oracle.record import EVERYTHING
from tests.places.docker.host_faults import (
    CONFIG,
    FAULTS,
    HEALTHY,
    JOB,
    NEW,
    PARENT,
    RESTART,
    UNIT,
    Fault,
)

pytestmark = pytest.mark.host

PREPARE = f"""
tar -C /bin -c busybox | docker import - tiny
cp /etc/default/docker /root/default
PYTHONPATH=/opt python3 -c '
from mlhost_limits.schema import load_policy
from mlhost_limits.provision import provision
from mlhost_limits.core.provision_options import Options
provision(load_policy(None, "training"), Options(switches={{"docker_restart": True}}))
'
cp -a {CONFIG} /root/daemon.json
"""
RESET = f"""
docker rm -f job >/dev/null 2>&1
[ -d {Path(PARENT).parent} ] && touch /root/restart
rm -rf {Path(PARENT).parent} {Path(UNIT).parent} /etc/sysctl.d/99-zz.conf /etc/sysctl.d/95-site.conf
cp /root/default /etc/default/docker
cp /root/daemon.json {CONFIG}
sysctl -qw fs.nr_open=1048576
systemctl daemon-reload
[ -f /root/restart ] && rm /root/restart && systemctl restart containerd
"""
"""The host as it was provisioned; dockerd may still run with something else."""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running() as fresh:
        carry(fresh, {"look.py": Path(__file__).with_name("look_at_containers.py")})
        fresh.ssh(PREPARE, timeout=900)
        yield fresh


def look(host: Host, first: str = "true") -> dict[str, Any]:
    """Do something on the host in a shell, then check its containers."""
    done = host.ssh(f"{first}\nPYTHONPATH=/opt python3 /opt/look.py", timeout=900)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def collect_causes(found: dict[str, Any], place: str) -> list[list[tuple[str, str]]]:
    """Return the codes and places of every finding that has causes, each combination once."""
    named = []
    for finding in found["findings"]:
        if finding["place"] == place and finding["causes"]:
            pairs = [(cause["code"], describe(cause["at"])) for cause in finding["causes"]]
            if pairs not in named:
                named.append(pairs)
    return named


def describe(at: dict[str, Any] | None) -> str:
    return "" if at is None else f"{at['file']}:{at['line']}" if at["line"] else str(at["file"])


def collect_commands(found: dict[str, Any], place: str) -> str:
    """Return the commands of every cause, as they would be pasted into a shell."""
    causes = [
        cause for one in found["findings"] if one["place"] == place for cause in one["causes"]
    ]
    remedies = {json.dumps(cause): cause["remedy"]["commands"] for cause in causes}
    return "\n".join(
        words[2] if words[:2] == ["sh", "-c"] else shlex.join(words)
        for commands in remedies.values()
        for words in commands
    )


def test_a_healthy_host_names_nothing(host: Host) -> None:
    """Neither a container that runs nor a new one is blamed, and the file is what it should be."""
    found = look(
        host, f"{RESET}\n{RESTART}\ndocker run -d --name job tiny /busybox sleep 100000 >/dev/null"
    )
    assert host.ssh(f"cat {CONFIG}").stdout == HEALTHY
    assert {finding["place"] for finding in found["findings"]} == {NEW, JOB}
    assert not any(finding["causes"] for finding in found["findings"]), found["lines"]
    assert {finding["status"] for finding in found["findings"]} == {"pass"}, found["lines"]
    outlooks = {(one["next_restart"], one["after_boot"]) for one in found["findings"]}
    assert outlooks == {("pass", "pass"), ("pass", "")}, found["lines"]


@pytest.mark.parametrize(
    "fault", FAULTS if EVERYTHING else FAULTS[::48], ids=lambda fault: fault.name
)
def test_a_fault_is_named_and_its_commands_put_it_right(host: Host, fault: Fault) -> None:
    """The code and the line are right, and after the commands all is well, now and later."""
    settled = RESET if RESTART in fault.make else f"{RESET}\n{RESTART}; sleep 1"
    found = look(host, f"{settled}\n{fault.make}")
    print("\n".join(found["lines"]))
    assert collect_causes(found, fault.place) == [list(fault.causes)]
    failed = any(
        one["status"] == "fail" for one in found["findings"] if one["place"] == fault.place
    )
    assert failed is not fault.late
    commands = collect_commands(found, fault.place)
    after = look(host, fault.act or commands)
    print(commands, "\n".join(after["lines"]), sep="\n")
    assert {one["status"] for one in after["findings"]} == {"pass"}
    assert not any("fail" in (one["next_restart"], one["after_boot"]) for one in after["findings"])
