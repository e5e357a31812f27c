# SPDX-License-Identifier: BSD-2-Clause
"""Say why a unit may hold fewer tasks than a policy asks, and what puts it right.

A task counts in the cgroup of its unit and in those of all slices above it, so the lowest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.cause import Cause, Remedy, cite
from ..core.quote import decode
from ..core.values import UNLIMITED, Declaration, NamedTuple, format_quantity
from ..systemd.edits import add_lines, pick_site_file
from ..systemd.limits import SECTIONS as OF_PROCESSES
from ..systemd.model import Files, outlive_boot
from ..systemd.unit_file import Source, order_sources, scan_unit
from ..systemd.values import parse_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    Commands = tuple[tuple[str, ...], ...]

CODES = {
    "tasks-unit-too-low": "the unit states a TasksMax that is too low",
    "tasks-slice-too-low": "a slice above the unit states a TasksMax that is too low",
    "tasks-default-too-low": "the default for tasks is too low, and the unit states nothing",
    "tasks-not-in-force": "files give enough tasks, and the cgroup has another bound",
}


class TasksLevel(NamedTuple):
    """A unit that bounds tasks: its files, and what its cgroup has now if that is known.

    ``folder`` is where its drop-ins belong. ``defaults_of`` is there where it stands for every
    unit that states nothing: the name of its manager's file.
    """

    unit: str
    files: Files
    seen: int | None = None
    path: str = ""
    folder: str = "/etc/systemd/system"
    defaults_of: str = ""
    reload: Commands = (("systemctl", "daemon-reload"),)

    @property
    def kind(self) -> str:
        return self.unit.rpartition(".")[2]


def predict_level(level: TasksLevel, highest: int) -> int | None:
    """Return how many tasks a unit's own cgroup will hold once the files are read, if known."""
    if level.defaults_of:
        return predict_default(level.files, highest)
    return predict_tasks(level.kind, level.files, highest)


def predict_all(levels: Sequence[TasksLevel], highest: int) -> int | None:
    """Return how many tasks a unit may hold: of its own bound and those above it the lowest.

    ``None`` where one of them is not known.
    """
    bounds = [predict_level(level, highest) for level in levels]
    known = [bound for bound in bounds if bound is not None]
    return min(known, default=UNLIMITED) if len(known) == len(bounds) else None


def outlive(levels: Sequence[TasksLevel]) -> list[TasksLevel]:
    """Return the levels with the files that a boot leaves."""
    return [level._replace(files=outlive_boot(level.files)) for level in levels]


def find_tasks_causes(wanted: int, levels: Sequence[TasksLevel], highest: int) -> list[Cause]:
    """Return what must change so that a unit may hold so many tasks, the unit's own first."""
    causes = []
    for level in levels:
        given = predict_level(level, highest)
        given = level.seen if given is None else given
        if given is not None and given < wanted:
            causes.append(_blame_files(wanted, level, given))
        elif given is not None and level.seen is not None and level.seen < wanted:
            causes.append(_blame_cgroup(level, given))
    return causes


def find_tasks_line(level: TasksLevel) -> Declaration | None:
    """Return the line that bounds a unit: its own, or of the default, which slices have not."""
    own = [] if level.defaults_of else read_unit_tasks(level.kind, level.files)
    stated = own if own or level.kind == "slice" else read_default_tasks(level.files)
    return stated[-1] if stated else None


def _blame_files(wanted: int, level: TasksLevel, given: int) -> Cause:
    """Blame the line that bounds a unit, or that there is none."""
    own = [] if level.defaults_of else read_unit_tasks(level.kind, level.files)
    remedy = _state(wanted, level)
    if own and own[-1].value:
        is_slice = level.kind == "slice"
        code = "tasks-slice-too-low" if is_slice else "tasks-unit-too-low"
        means = "" if str(own[-1].value) == str(given) else f", {given} tasks"
        return Cause(code, f"{cite(own[-1])} bounds {level.unit}{means}", remedy, own[-1])
    defaults = read_default_tasks(level.files)
    who = "new units" if level.defaults_of else level.unit
    if defaults:
        text = f"{cite(defaults[-1])} bounds {who} to {given} tasks"
        return Cause("tasks-default-too-low", text, remedy, defaults[-1])
    text = f"no file states TasksMax for {who}, and systemd's default is {given}"
    return Cause("tasks-default-too-low", text, remedy)


def _state(wanted: int, level: TasksLevel) -> Remedy:
    """State enough tasks in a drop-in of the unit, or of the manager, that sorts last."""
    value = "infinity" if wanted >= UNLIMITED else str(wanted)
    if level.defaults_of:
        path = pick_site_file(f"/etc/systemd/{level.defaults_of}.d", level.files.manager_dropins)
        remedy = add_lines(path, "Manager", f"{DEFAULT_KEY}={value}")
    else:
        path = pick_site_file(f"{level.folder}/{level.unit}.d", level.files.dropins)
        remedy = add_lines(path, SECTIONS[level.kind], f"{KEY}={value}")
    return remedy._replace(commands=(*remedy.commands, *level.reload) if remedy.commands else ())


def _blame_cgroup(level: TasksLevel, given: int) -> Cause:
    """Blame that a cgroup has another bound than its files say."""
    has, told = format_quantity(level.seen or 0), format_quantity(given)
    who = "new units" if level.defaults_of else level.unit
    text = f"files give {who} {told} tasks, and {level.path} has {has}"
    at = find_tasks_line(level)
    remedy = Remedy("let the manager read its files", level.reload)
    return Cause("tasks-not-in-force", text, remedy, at)


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
        weight = {"%": 100, "\u2030": 10, "\u2031": 1}[share[3]]
        parts = (int(share[1]) * 100 + int((share[2] or "").ljust(2, "0"))) * weight
        if parts > 10**6:
            raise ValueError(f"{value} is more than 100 %")
        return highest * (parts // 100) // 10000  # 0% is heeded, and means none at all.
    number = parse_count(value)
    if not 0 < number < UNLIMITED:
        raise ValueError(f"{value} is not a number of tasks")
    return number


def find_default(files: Files, highest: int) -> int | None:
    """Return what systemd gives where nothing states it (``DEFAULT_TASKS_MAX``), if it is known."""
    share = files.vendor.tasks_share
    return None if share is None else highest * share // 100


def predict_tasks(kind: str, files: Files, highest: int) -> int | None:
    """Return how many tasks a unit's own cgroup will hold; those of its slices count as well.

    ``None``: what this distribution's systemd gives is not known. Sources:
    ``config_parse_tasks_max()``, ``unit_init()`` and ``system_tasks_max()`` of systemd.
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
