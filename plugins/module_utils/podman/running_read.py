# SPDX-License-Identifier: BSD-2-Clause
"""Read how a running container of Podman came about: its specification, its .container file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..containers.read import RunningContainer, find_monitor
from ..containers.spec import Started
from ..containers.spec_read import read_started
from ..host.files import list_folder, read_text
from ..host.owned import ask_owner
from ..systemd.unit_file import Source
from .quadlet import Quadlet, find_service, find_source, read_quadlet


def read_created(one: RunningContainer) -> Started:
    """Return what is known of how a container was created."""
    monitor = find_monitor(one.process.pid)
    path = f"{monitor.bundle if monitor else ''}/config.json"
    return read_started(one.container, path, one.owner)


def find_quadlet(cgroup: str) -> Quadlet | None:
    """Return the service that Quadlet made for a container; nothing where another started it.

    :param cgroup: /proc/PID/cgroup of a process in it.
    """
    unit, uid = find_service(cgroup)
    if not unit:
        return None
    try:
        sources = _read_all(unit, "/run/systemd") if uid is None else _ask_owner(unit, uid)
        return Quadlet(unit, uid, read_quadlet(sources)) if sources else None
    except (OSError, ValueError):
        return None


def _ask_owner(unit: str, uid: int) -> list[Source]:
    """Return the sources of a user's own service, as that user reads them."""
    told = ask_owner(uid, partial(_read_all, unit, f"/run/user/{uid}/systemd"))
    return [Source(str(path), str(text)) for path, text in told]


def _read_all(unit: str, top: str) -> list[Source]:
    path = find_source(read_text(f"{top}/generator/{unit}") or "")
    return list(_read_sources(path)) if path else []


def _read_sources(path: str) -> Iterator[Source]:
    """Yield a .container file and its drop-ins, which Podman knows since version 5."""
    yield Source(path, read_text(path) or "")
    for name in list_folder(f"{path}.d"):
        if name.endswith(".conf"):
            yield Source(f"{path}.d/{name}", read_text(f"{path}.d/{name}") or "")
