# SPDX-License-Identifier: BSD-2-Clause
"""Find the .container file that a running container of Podman was made of."""

from __future__ import annotations

from ..policy.quadlet import Quadlet, find_service, find_source, read_quadlet
from ..policy.unit_file import Source
from .files import list_folder, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def find_quadlet(cgroup: str) -> Quadlet | None:
    """Return the service that Quadlet made for a container; nothing where another started it.

    :param cgroup: /proc/PID/cgroup of a process in it.
    """
    unit, uid = find_service(cgroup)
    if not unit:
        return None
    top = "/run/systemd" if uid is None else f"/run/user/{uid}/systemd"
    try:
        path = find_source(read_text(f"{top}/generator/{unit}") or "")
        return Quadlet(unit, uid, read_quadlet(list(_read_sources(path)))) if path else None
    except OSError:
        return None


def _read_sources(path: str) -> Iterator[Source]:
    """Yield a .container file and its drop-ins, which Podman knows since version 5."""
    yield Source(path, read_text(path) or "")
    for name in list_folder(f"{path}.d"):
        if name.endswith(".conf"):
            yield Source(f"{path}.d/{name}", read_text(f"{path}.d/{name}") or "")
