# SPDX-License-Identifier: BSD-2-Clause
"""Tell from a process's cgroup what systemd knows it as: a service, a login session, a container.

Source: cgroups(7); ``cg_path_get_unit()`` and its like in cgroup-util.c of systemd.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .values import NamedTuple

_CONTAINER = (
    r"((cri-containerd|crio|docker|libpod)-[0-9a-f]{12,}.*\.scope"
    r"|(docker|garden|lxc|podman|kubepods.*|libpod_parent|machine\.slice)|lxc\.(payload|monitor).*)"
)
_SESSION = r"session-([A-Za-z0-9]+)\.scope"
_USER_MANAGER = r"user@([0-9]+)\.service"


class Home(NamedTuple):
    """Where a process lives.

    ``unit`` is the system's service. ``user_unit`` is a service of the user manager, which then is
    ``unit``, and ``uid`` the user's. ``session`` is the id of a login session.
    """

    unit: str = ""
    user_unit: str = ""
    uid: int | None = None
    session: str = ""


@lru_cache(maxsize=4096)  # Thousands of processes share a few cgroups.
def find_home(text: str) -> Home:
    """Return where a process lives; nothing for a container's, and for one that no unit holds.

    :param text: /proc/PID/cgroup, of version 1, 2 or both.
    """
    if is_container(text):
        return Home()
    parts = _find_path(text).split("/")
    for index, part in enumerate(parts):
        manager, session = re.fullmatch(_USER_MANAGER, part), re.fullmatch(_SESSION, part)
        if manager:
            inside = [name for name in parts[index + 1 :] if name.endswith((".service", ".scope"))]
            own = inside[-1] if inside and inside[-1] != "init.scope" else ""
            return Home(part, own, int(manager[1]))
        if session:
            return Home(session=session[1])
        if part.endswith(".service"):
            return Home(part)
    return Home()


@lru_cache(maxsize=4096)
def list_units(text: str) -> tuple[str, ...]:
    """Return the units of the system's manager that hold a process, the outermost first.

    They are slices, and the service or scope that the path comes to first. Whoever that belongs
    to may make cgroups below it, of any name.

    :param text: /proc/PID/cgroup.
    """
    found = []
    for part in _find_path(text).split("/"):
        if part.endswith((".slice", ".service", ".scope")):
            found.append(part)
        if part.endswith((".service", ".scope")):
            break
    return tuple(found)


def is_container(text: str) -> bool:
    """Tell whether a process lives in a container, by /proc/PID/cgroup."""
    return any(re.fullmatch(_CONTAINER, part) for part in _find_path(text).split("/"))


def split_rows(text: str) -> list[list[str]]:
    """Return the number, the controllers and the path of every hierarchy of /proc/PID/cgroup."""
    return [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]


def find_paths(text: str) -> dict[str, str]:
    """Return the path for each controller; that of version 2 has no name."""
    rows = split_rows(text)
    return {controller: path for dummy, names, path in rows for controller in names.split(",")}


def count_cpus(text: str) -> int:
    """Return how many CPUs a list such as ``0-3,8`` names."""
    pairs = re.findall(r"([0-9]{1,40})(?:-([0-9]{1,40}))?", text)
    return sum(int(last or first) - int(first) + 1 for first, last in pairs)


def _find_path(text: str) -> str:
    """Return the path in the hierarchy that systemd keeps."""
    paths = {names: path for dummy, names, path in split_rows(text)}
    return paths.get("name=systemd") or paths.get("", "")
