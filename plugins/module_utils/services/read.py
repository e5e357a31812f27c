# SPDX-License-Identifier: BSD-2-Clause
"""Read what a policy for systemd's services meets on a host: drop-ins, units, managers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from ..core.cgroup import find_home, list_units
from ..host.files import list_folder, read_distribution, read_text
from ..host.image import is_image
from ..host.look import Process, read_process
from ..kernel.read import read_sysctl
from ..systemd.limits import MANAGER
from ..systemd.model import Files
from ..systemd.sources_read import read_sources
from ..systemd.unit_file import list_wider_names
from ..systemd.unit_read import find_unit_names, read_manager_files
from .logind_conf import LOGIND
from .plan import TOP, UNITS, USER_CONF
from .tasks_causes import MOST

_BASES = (UNITS, "/etc/systemd/system.control")


def list_dropin_folders() -> list[str]:
    """Return the folders below /etc/systemd that hold drop-ins."""
    confs = [f"{TOP}/{name}.d" for name in (MANAGER, USER_CONF, LOGIND)]
    units = [f"{base}/{name}" for base in _BASES for name in list_folder(base)]
    return [path for path in (*confs, *units) if path.endswith(".d") and os.path.isdir(path)]


def read_editable() -> dict[str, str]:
    """Return the drop-ins below /etc/systemd that are files of their own, by path."""
    return {path: read_text(path) or "" for path in _list_dropins()}


def _list_dropins() -> Iterator[str]:
    for folder in list_dropin_folders():
        for name in list_folder(folder):
            path = f"{folder}/{name}"
            is_dropin = name.endswith(".conf") and not name.startswith(".")
            if is_dropin and os.path.isfile(path) and not os.path.islink(path):
                yield path


def read_owner(owner: str) -> Files:
    """Return the files of a unit with those of its manager, or of a manager by its file's name.

    :raises ValueError: If they are too many, or name each other in a ring.
    """
    if owner in (MANAGER, USER_CONF, LOGIND):
        main, dropins = read_manager_files("/", owner)
        return Files(None, (), main, tuple(dropins), vendor=read_distribution())
    return read_sources(owner)


def read_most_tasks() -> int:
    """Return how many tasks the system can hold.

    Source: ``system_tasks_max()``; pid_max itself is never given to a process.
    """
    if is_image():
        return MOST  # Of a 64-bit kernel: how many its memory can hold is not known.
    pids, threads = (read_sysctl(f"kernel.{name}") or "" for name in ("pid_max", "threads-max"))
    values = [int(pids) - 1] if pids.isdigit() else []
    values += [int(threads)] if threads.isdigit() else []
    return min(values, default=MOST)


def find_owned(
    owners: Iterable[str], processes: Iterable[Process]
) -> dict[str, dict[str, list[Process]]]:
    """Return, by units of a policy, the running units that each means, and their processes.

    A unit that several mean belongs to the narrowest: itself, its template, a prefix. Left out are
    containers, and what the managers of users run.
    """
    names = {find_unit_names(owner)[1][0]: owner for owner in owners}
    found: dict[str, dict[str, list[Process]]] = {owner: {} for owner in names.values()}
    known: dict[str, str] = {}
    for process in processes if names else ():
        for unit in _list_units(process):
            if unit not in known:
                wider = (names[name] for name in list_wider_names(unit) if name in names)
                known[unit] = next(wider, "")
            if known[unit]:
                found[known[unit]].setdefault(unit, []).append(process)
    return found


def _list_units(process: Process) -> Iterator[str]:
    """Yield the units of the system that a process is in: its service, and the slices above."""
    home = find_home(process.cgroup)
    if home.unit and not home.user_unit:
        yield home.unit
    yield from (unit for unit in list_units(process.cgroup) if unit.endswith(".slice"))


def find_own_unit() -> str:
    """Return the service that this very process belongs to, if it is one's."""
    return find_home(read_process(os.getpid()).cgroup).unit


def pick_oldest(processes: Sequence[Process]) -> Process:
    return min(processes, key=lambda process: (process.start, process.pid))


def is_template(unit: str) -> bool:
    """Tell whether a name stands for many units: a template's, or one that ends in a dash."""
    return unit.rpartition(".")[0].endswith(("@", "-"))
