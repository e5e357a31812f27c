# SPDX-License-Identifier: BSD-2-Clause
"""Read how many tasks a cgroup may hold, and those above it, on cgroup v1 and v2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.cgroup import find_paths
from ..core.values import UNLIMITED
from ..host.door import read_kernel_text
from .tasks import Level

_ROOT = "/sys/fs/cgroup"


def read_levels(cgroup: str, root: str = _ROOT) -> list[Level]:
    """Return the cgroup of a process and those above it that have a bound, the lowest first.

    :param cgroup: /proc/PID/cgroup.
    :returns: Nothing where the controller is not there.
    """
    paths = find_paths(cgroup)
    if "pids" in paths:
        return list(_read(f"{root}/pids", paths["pids"]))
    return list(_read(root, paths[""])) if "" in paths else []


def _read(base: str, path: str) -> Iterator[Level]:
    while path.strip("/"):
        file = f"{base}{path}/pids.max"
        most = _read_most(file)
        if most is not None:
            yield Level(path.rpartition("/")[2], file, most)
        path = path.rpartition("/")[0]


def _read_most(file: str) -> int | None:
    """Return how many tasks a cgroup may hold; nothing where no controller is passed on to it."""
    try:
        text = read_kernel_text(file).strip()
    except OSError:
        return None
    if text == "max":
        return UNLIMITED
    return int(text) if text.isdigit() else None


def read_again(levels: Iterable[Level]) -> list[Level]:
    """Return levels as they are by now; one whose cgroup is gone keeps what it had."""
    now = ((level, _read_most(level.path)) for level in levels)
    return [level if most is None else level._replace(most=most) for level, most in now]
