# SPDX-License-Identifier: BSD-2-Clause
"""Read how many tasks a cgroup may hold, and those above it, on cgroup v1 and v2."""

from __future__ import annotations

from typing import NamedTuple

from ..core.cgroup import find_paths
from ..core.rlimit import UNLIMITED
from ..host.door import read_kernel_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = "/sys/fs/cgroup"


class Level(NamedTuple):
    """One cgroup: the unit that it belongs to, where it lies, and how many tasks it may hold."""

    unit: str
    path: str
    most: int


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
        try:
            text = read_kernel_text(file).strip()
        except OSError:
            text = ""  # The controller is not passed on as far down as that.
        if text == "max" or text.isdigit():
            yield Level(path.rpartition("/")[2], file, UNLIMITED if text == "max" else int(text))
        path = path.rpartition("/")[0]


def cut_levels(levels: list[Level], unit: str) -> list[Level]:
    """Return the levels from a unit's own cgroup upward.

    It is the highest of that name: who owns it may make others below.
    """
    found = [index for index, level in enumerate(levels) if level.unit == unit]
    return levels[found[-1] :] if found else []
