# SPDX-License-Identifier: GPL-3.0-or-later
"""The host that every fault starts from: provisioned, with a service of its own, and all green."""

from __future__ import annotations

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


@contextmanager
def saved_host(
    release: str = guest.DEFAULT_RELEASE, script: str = "true"
) -> Iterator[snapshot.Snapshot]:
    """Provision a guest once and keep it for the length of a ``with`` block.

    :param script: What to do last.
    """
    with TemporaryDirectory(prefix="mlhost-faults-", dir="/var/tmp") as folder:
        with guest.running(release) as host:
            prepare(host)
            host.ssh(script, timeout=600)
            saved = snapshot.keep(host, Path(folder))
        yield saved


def prepare(host: Host) -> None:
    """Make the base host of a fresh one."""
    carry(host, {PROVISION.name: PROVISION})
    host.ssh(f"set -e\n{PREPARE}", timeout=600)
    # What Python and the page cache keep from a first check, every later one has.
    host.ssh("cd /opt && PYTHONPATH=/opt python3 -m mlhost_limits.cli check", timeout=600)
