# SPDX-License-Identifier: GPL-3.0-or-later
"""The host that every fault starts from: provisioned, with a service of its own, and all green."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.host import guest, snapshot
from tests.host.connection import Host
from tests.host.library import carry

from .fault import Policy, write

PROVISION = Path(__file__).with_name("provision_once.py")
UNIT = "/etc/systemd/system/trainer.service"
LIMITS = {"nofile": {"soft": 65536, "hard": 1048576}, "memlock": "unlimited"}
POLICY: Policy = {"processes": [{"unit": "trainer.service", "limits": LIMITS}]}
"""Beside the profile: what our own service owes its processes."""

UNIT_LINES = (
    "[Unit]",
    "Description=A training service",
    "[Service]",
    "ExecStart=/usr/bin/sleep infinity",
    "LimitNOFILE=65536:1048576",
    "LimitMEMLOCK=infinity",
)
# The count of starts is forgotten, so that each fault may restart Docker as often as systemd lets it.
PREPARE = f"""
groupadd -g 3000 team
usermod -aG team alice
{write(UNIT, *UNIT_LINES)}
systemctl daemon-reload
systemctl start trainer.service
tar -C /bin -c busybox | docker import - tiny
python3 /opt/{PROVISION.name}
systemctl reset-failed docker.service
"""
START_ROOTLESS = Path(__file__).with_name("start_rootless.sh")
JOBS: Policy = {
    "jobs": {
        "slurm": {"limits": {"nofile": {"soft": 131072, "hard": 131072}, "memlock": "unlimited"}}
    }
}
"""What jobs owe their users; a login of the profile has a lower soft nofile."""

# What nobody states is the caller's, and root's session has a core of 0.
PODMAN: Policy = {
    "containers": {"podman": {"limits": {**LIMITS, "core": "unlimited"}, "shm_size": "1GiB"}}
}

RELEASES = {"quadlet": "trixie+podman"}
"""The base host of what Debian 12 is too old for."""

EXTRAS = {
    "podman": f"""
tar -C /bin -c busybox | podman import - tiny
grep -q '^alice:' /etc/subuid || usermod --add-subuids 300000-365535 --add-subgids 300000-365535 alice
python3 /opt/{PROVISION.name} {shlex.quote(json.dumps(PODMAN))}
""",
    "quadlet": f"""
tar -C /bin -c busybox | podman import - tiny
python3 /opt/{PROVISION.name} {shlex.quote(json.dumps(PODMAN))}
""",
    "rootless": """
sh /opt/start_rootless.sh
""",
    "slurm": f"""
python3 /opt/{PROVISION.name} {shlex.quote(json.dumps(JOBS))}
""",
}
"""How a host with more packages is set up."""


@contextmanager
def saved_host(extra: str = "") -> Iterator[snapshot.Snapshot]:
    """Provision a guest once and keep it for the length of a ``with`` block."""
    with TemporaryDirectory(prefix="mlhost-faults-", dir="/var/tmp") as folder:
        with guest.running(find_release(extra), new=True) as host:
            prepare(host, extra)
            saved = snapshot.keep(host, Path(folder))
        yield saved


def find_release(extra: str) -> str:
    """Return the release of the base host with more packages."""
    named = RELEASES.get(extra, f"{guest.DEFAULT_RELEASE}+{extra}")
    return named if extra else guest.DEFAULT_RELEASE


def prepare(host: Host, extra: str = "") -> None:
    """Make the base host of a fresh one."""
    scripts = (PROVISION, START_ROOTLESS)
    carry(host, {script.name: script for script in scripts})
    host.ssh(f"set -e\n{PREPARE}{EXTRAS.get(extra, '')}", timeout=900)
    # What Python and the page cache keep from a first check, every later one has.
    host.ssh("cd /opt && PYTHONPATH=/opt python3 -m mlhost_limits.cli check", timeout=600)
