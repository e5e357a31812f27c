# SPDX-License-Identifier: BSD-2-Clause
"""Say why a unit may hold fewer tasks than a policy asks, and what puts it right.

A task counts in the cgroup of its unit and in those of all slices above it, so the lowest counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.cause import Cause, cite
from ..core.named import NamedTuple
from ..core.remedy import Remedy
from ..core.rlimit import UNLIMITED, format_quantity
from ..systemd.edits import add_lines, pick_site_file
from ..systemd.model import Files, outlive_boot
from .tasks_max import (
    DEFAULT_KEY,
    KEY,
    SECTIONS,
    predict_default,
    predict_tasks,
    read_default_tasks,
    read_unit_tasks,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.declaration import Declaration

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
