# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of podman-systemd.unit(5): services that Quadlet makes, on a host whose Podman has it."""

from __future__ import annotations

from tests.faults.base import PODMAN
from tests.faults.fault import Culprit, Fault, merge_policies, sed, write

FILE = "/etc/containers/systemd/web.container"
START = "systemctl daemon-reload; systemctl start web.service; sleep 2"
PLACE = "^container:podman/systemd-web"
TASKS = merge_policies(PODMAN, {"containers": {"podman": {"tasks": 500}}})
NOFILE = (f"{PLACE} nofile soft", f"{PLACE} nofile hard")


def quadlet(name: str, line: str, shows: tuple[str, ...], after: str = "") -> Fault:
    """Return a service whose file has one line that gives its container too little."""
    lines = (
        "[Container]",
        "Image=localhost/tiny",
        "Pull=never",
        "Network=none",
        "Exec=/busybox sleep 9999",
        line,
    )
    culprit = Culprit(words="has run since before") if after else Culprit(FILE, line)
    make = f"{write(FILE, *lines)}; {START}{after}"
    return Fault(f"quadlet: {name}", make, (culprit,), shows, PODMAN, extra="quadlet")


FAULTS = [
    quadlet("a limit of the container", "Ulimit=nofile=1024:4096", NOFILE),
    quadlet("an option of podman", "PodmanArgs=--ulimit nofile=1024:4096", NOFILE),
    quadlet("a small /dev/shm", "ShmSize=64m", (f"{PLACE} shm_size",)),
    quadlet("few tasks", "PidsLimit=100", (f"{PLACE} tasks",))._replace(policy=TASKS),
    quadlet("a line that was put right and not restarted", "Ulimit=nofile=1024:4096", NOFILE,
            f"; {sed('s/1024:4096/65536:1048576/', FILE)}"),
]  # fmt: skip
