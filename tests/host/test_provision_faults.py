# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input and broken hosts, through the real modules: one sentence says it, nothing is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.host import guest
from tests.host.connection import Host

pytestmark = pytest.mark.host

REPOSITORY = Path(__file__).parents[2]
INSTALLED = REPOSITORY / "build" / "collections"
_RESULT = re.compile(r"^\S+ \| (?:SUCCESS|CHANGED|FAILED!) => ", re.MULTILINE)

# Everything in /etc and every running value that a run may write.
FINGERPRINT = r"""
find /etc -xdev -printf '%p %M %u:%g %l\n'
find /etc -xdev -type f -exec sha256sum {} +
sysctl fs.file-max fs.nr_open vm.max_map_count
systemctl show -p MainPID docker
"""

SEED = {
    "runtimes": {"nvidia": {"path": "/usr/bin/runc"}},
    "labels": ["proxy=http://fleet:s3cret-seed@proxy.example:3128", "api_token=t0ken-seed"],
}
PREPARE = f"""
cat > /etc/docker/daemon.json <<'END'
{json.dumps(SEED, indent=4)}
END
useradd --shell /usr/sbin/nologin robot
useradd --shell /bin/bash --expiredate 1 gone
systemctl restart docker
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running() as fresh:
        fresh.ssh(PREPARE)
        yield fresh


def run_module(
    host: Host, module: str, options: dict[str, object], *words: str
) -> tuple[dict[str, Any], str]:
    """Run a module of the installed collection; return its result and all that was printed."""
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible")),
            *(host.name, "-i", str(host.inventory)),
            *("-m", f"mlhost.limits.{module}", "-a", json.dumps(options), *words),
        ],
        env={"ANSIBLE_COLLECTIONS_PATH": str(INSTALLED), "ANSIBLE_PIPELINING": "1", **os.environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said = done.stdout + done.stderr
    start = _RESULT.search(done.stdout)
    assert start, said
    result = json.JSONDecoder().raw_decode(done.stdout, start.end())[0]
    assert bool(result.get("failed", "FAILED!" in start[0])) == bool(done.returncode), said
    return {**result, "failed": bool(done.returncode)}, said


def take_fingerprint(host: Host) -> set[str]:
    return set(host.ssh(FINGERPRINT).stdout.splitlines())


class Fault(NamedTuple):
    """A reason to refuse: how the host gets into that state and out of it, and what is said."""

    name: str
    says: str
    options: dict[str, object] = {}
    make: str = "true"
    unmake: str = "true"
    words: tuple[str, ...] = ()


DROP_IN = "/etc/systemd/system/docker.service.d/flags.conf"
SESSIONS = {"profile": "none", "sections": ["sessions"]}

FAULTS = [
    Fault("an empty policy", "policy: is empty, so nothing would be required; leave it out", {"policy": {}}),
    Fault("a list for a policy", "", {"policy": ["nofile"]}),
    Fault(
        "every wrong key and value at once",
        "",
        {
            "policy": {
                "sessions": [
                    {"users": ["*"], "limits": {"nofile": {"sfot": 3, "soft": 9, "hard": 5}}},
                ],
                "containers": {"docker": {"limits": {"memlock": "lots"}}},
            }
        },
    ),
    Fault(
        "nofile above fs.nr_open",
        "",
        {**SESSIONS, "policy": {"sessions": [{"users": ["alice"], "limits": {"nofile": 2000000}}]}},
    ),
    Fault(
        "a daemon.json that is no JSON",
        "",
        make="cp -a /etc/docker/daemon.json /root; printf '{\\n  \"debug\": true,\\n}\\n' > /etc/docker/daemon.json",
        unmake="cp -a /root/daemon.json /etc/docker/daemon.json",
    ),
    Fault(
        "a default that is also a flag of the unit",
        "",
        make=f"mkdir -p {os.path.dirname(DROP_IN)} && printf '%s\\n' '[Service]' 'ExecStart='"
        " 'ExecStart=/usr/sbin/dockerd -H fd:// --default-ulimit nofile=1024:4096' > " + DROP_IN +
        " && systemctl daemon-reload",
        unmake=f"rm -r {os.path.dirname(DROP_IN)} && systemctl daemon-reload",
    ),
    Fault(
        "a drop-in that links out of etc",
        "",
        make="ln -s /root/elsewhere.conf /etc/security/limits.d/90-mlhost.conf",
        unmake="rm /etc/security/limits.d/90-mlhost.conf",
    ),
    Fault(
        "an etc that is read-only",
        "",
        make="mount --bind /etc /etc && mount -o remount,bind,ro /etc",
        unmake="umount /etc",
    ),
    Fault("a user who is not root", "", words=("-u", "alice")),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_named_and_nothing_is_written(host: Host, fault: Fault) -> None:
    host.ssh(fault.make)
    try:
        before = take_fingerprint(host)
        result, said = run_module(host, "provision", {"docker_restart": True, **fault.options}, *fault.words)
        print(said)
        after = take_fingerprint(host)
    finally:
        host.ssh(fault.unmake)
    assert before ^ after == set()
    assert result["failed"]
    assert result["msg"] == fault.says
