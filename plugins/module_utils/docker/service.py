# SPDX-License-Identifier: BSD-2-Clause
"""Say when a daemon.json takes effect, and why dockerd cannot be restarted where it cannot."""

from __future__ import annotations

from ..core.named import NamedTuple

UNIT = "docker.service"


class Service(NamedTuple):
    """How a host has its dockerd.

    ``unit`` is the systemd unit that runs it, or that would; empty where something else started
    it. ``loads`` tells that the unit has a file, ``trouble`` why the program cannot be run, empty
    where it can, and ``pid`` is the daemon's, 0 where none runs.
    """

    unit: str = UNIT
    program: bool = True
    trouble: str = ""
    loads: bool = True
    masked: bool = False
    pid: int = 0


def find_wait(service: Service) -> str:
    """Return what must happen before daemon.json takes effect; nothing where dockerd runs."""
    if service.pid:
        return ""
    if not service.program:
        return "Docker is installed"
    if service.trouble:
        return f"dockerd can be run ({service.trouble})"
    if service.masked:
        return f"{service.unit} is unmasked and started"
    if not service.loads:
        return f"dockerd is started; {service.unit} has no file"
    return f"{service.unit} is started"


def find_hindrance(service: Service) -> str:
    """Return why a running dockerd would not come back from a restart; nothing where it would."""
    if not service.unit:
        return f"dockerd (pid {service.pid}) was not started by systemd, which cannot restart it"
    if service.masked:
        return f"{service.unit} is masked, so that it cannot be restarted"
    if not service.loads:
        return f"{service.unit} has no file any more, so that it cannot be restarted"
    if not service.program:
        return "the program of dockerd is gone, which would not start again"
    if service.trouble:
        return f"dockerd cannot be run ({service.trouble}), and would not start again"
    return ""
