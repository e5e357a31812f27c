# SPDX-License-Identifier: BSD-2-Clause
"""Read what decides the limits of Podman's containers: its files, its version, who may use it."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from functools import partial

from ..containers.read import RunningContainer, find_monitor
from ..containers.spec import Started
from ..containers.spec_read import read_started
from ..host.files import list_folder, read_folder, read_text
from ..host.owned import ask_owner
from ..host.program import run_program
from ..systemd.unit_file import Source
from .containers_conf import DROP_INS, MAIN, USERS_MAIN, VENDOR
from .quadlet import Quadlet, find_service, find_source, read_quadlet

PROGRAMS = ("/usr/bin/podman", "/usr/local/bin/podman", "/usr/sbin/podman")
_READS_ROOTS_OWN = (4, 9)
_TIME_LIMIT = 60.0


def find_podman() -> str | None:
    """Return the program, or ``None`` where Podman is not installed."""
    return next((path for path in PROGRAMS if os.access(path, os.X_OK)), None)


def read_version() -> tuple[int, ...]:
    """Return the version, such as ``(4, 3, 1)``; empty where it is not told."""
    program = find_podman()
    if program is None:
        return ()
    text = run_program([program, "--version"], _TIME_LIMIT, with_errors=False)[1]
    found = re.search(r"version ([0-9]+(?:\.[0-9]+)+)", text)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def read_conf_files(user: str = "") -> dict[str, str]:
    """Return the files that Podman reads for a user, as latin-1, by path.

    :param user: Empty for root, whose own files count since Podman 4.9.
    :raises OSError: If one cannot be read.
    """
    files = read_tree_conf_files("/")
    own = _find_own(user)
    if own and user:
        told = ask_owner(pwd.getpwnam(user).pw_uid, partial(_read_own, own))
        files.update({str(path): str(text) for path, text in told.items()})
    elif own and _has_own(own):
        files.update(_read_own(own))
    return files


def _read_own(own: str) -> dict[str, str]:
    text = read_text(own)
    return {**({} if text is None else {own: text}), **read_folder(f"{own}.d")}


def read_tree_conf_files(root: str) -> dict[str, str]:
    """Return the files that Podman reads for everyone, in a tree that will be a host."""
    named = {path: read_text(path, root) for path in (VENDOR, MAIN)}
    files = {path: text for path, text in named.items() if text is not None}
    return {**files, **read_folder(DROP_INS, root)}


def _has_own(own: str) -> bool:
    """Tell whether root has files of its own that this Podman reads."""
    there = os.path.exists(own) or os.path.isdir(f"{own}.d")
    return there and read_version() >= _READS_ROOTS_OWN


def _find_own(user: str) -> str:
    try:
        return f"{pwd.getpwnam(user or 'root').pw_dir}/{USERS_MAIN}"
    except KeyError:
        return ""


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
