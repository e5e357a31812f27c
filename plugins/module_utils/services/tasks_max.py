# SPDX-License-Identifier: BSD-2-Clause
"""Predict how many tasks systemd lets a unit hold: which line wins, and what it means.

Sources: ``config_parse_tasks_max()``, ``unit_init()`` and ``system_tasks_max()`` of systemd.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.declaration import Declaration
from ..core.quote import decode
from ..core.rlimit import UNLIMITED
from ..systemd.limits import SECTIONS as OF_PROCESSES
from ..systemd.unit_file import Source, order_sources, scan_unit
from ..systemd.values import parse_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..systemd.model import Files

KEY, DEFAULT_KEY = "TasksMax", "DefaultTasksMax"
SECTIONS = {**OF_PROCESSES, "slice": "Slice", "scope": "Scope"}
"""The kinds of unit that have a cgroup, and the section that holds what it may use."""

MOST = 2**22
"""The highest pid_max of a 64-bit kernel: no system holds more tasks."""

_SHARE = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,2}))?([%\u2030\u2031])")


def read_unit_tasks(kind: str, files: Files) -> list[Declaration]:
    """Return the lines of a unit that count, in the order in which they apply."""
    sources = order_sources(files.main, files.dropins)
    return list(_read(sources, SECTIONS.get(kind, ""), KEY))


def read_default_tasks(files: Files) -> list[Declaration]:
    """Return the lines of the manager's files that count, in the order in which they apply."""
    sources = order_sources(files.manager, files.manager_dropins)
    return list(_read(sources, "Manager", DEFAULT_KEY))


def _read(sources: Sequence[Source], section: str, key: str) -> Iterator[Declaration]:
    for source in sources:
        scan = scan_unit(source.text, source.path)
        for setting in scan.settings:
            if (setting.section, setting.key) == (section, key) and is_heeded(setting.value):
                yield setting.declare(setting.value)
        if scan.fault and section == "Manager":
            return  # Of system.conf and its drop-ins nothing more is read.


def is_heeded(value: str) -> bool:
    """Tell whether systemd takes a value; what it does not take leaves the line before in force."""
    try:
        resolve_tasks(value, MOST)
    except ValueError:
        return False
    return True


def resolve_tasks(value: str, highest: int) -> int | None:
    """Return how many tasks a value means; ``None`` for an empty one, the default.

    :param highest: The number of tasks that the system can hold, of which a share is taken.
    :raises ValueError: If systemd ignores it.
    """
    if not value:
        return None
    if value == "infinity":
        return UNLIMITED
    share = _SHARE.fullmatch(decode(value))
    if share:
        per = {"%": 100, "\u2030": 1000, "\u2031": 10000}[share[3]]
        places = share[2] or ""
        if int(share[1]) * 10 ** len(places) + int(places or 0) > per * 10 ** len(places):
            raise ValueError(f"{value} is more than all")
        parts = 10000 // per * int(share[1]) + int((places + "00")[:2] or 0) * 100 // per
        return highest * parts // 10000  # 0% is heeded, and means none at all.
    number = parse_count(value)
    if not 0 < number < UNLIMITED:
        raise ValueError(f"{value} is no number of tasks")
    return number


def find_default(files: Files, highest: int) -> int | None:
    """Return what systemd gives where nothing states it (``DEFAULT_TASKS_MAX``), if it is known."""
    share = files.vendor.tasks_share
    return None if share is None else highest * share // 100


def predict_tasks(kind: str, files: Files, highest: int) -> int | None:
    """Return how many tasks a unit's own cgroup will hold; those of its slices count as well.

    ``None``: what this distribution's systemd gives is not known.
    """
    ranked = read_unit_tasks(kind, files)
    value = resolve_tasks(str(ranked[-1].value), highest) if ranked else None
    if value is not None:
        return value
    # Slices have no default (unit_init()).
    return UNLIMITED if kind == "slice" else predict_default(files, highest)


def predict_default(files: Files, highest: int) -> int | None:
    """Return how many tasks a unit's cgroup will hold that states nothing, if it is known."""
    ranked = read_default_tasks(files)
    value = resolve_tasks(str(ranked[-1].value), highest) if ranked else None
    if value is not None:
        return value
    # An empty value in the manager's files means no bound at all.
    return UNLIMITED if ranked else find_default(files, highest)
