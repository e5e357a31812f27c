# SPDX-License-Identifier: BSD-2-Clause
"""Make the services of a policy of what a site wrote for units, managers and logind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ..core.adopted import Adopted, Candidate, find_excess, settle, write_limit, write_value
from ..core.edit import HEADER
from ..core.values import Declaration
from ..host.files import list_folder, under
from ..kernel.adopt import find_nr_open
from ..systemd.limits import MANAGER, read_manager_limits, read_unit_limits
from ..systemd.model import Files
from ..systemd.unit_file import Source
from ..systemd.unit_read import UnitFiles, find_unit_names, read_manager_files, read_unit_files
from ..systemd.want import declare
from .logind_conf import LOGIND, read_remove_ipc
from .plan import USER_CONF
from .policy import TASKS, read_services
from .tasks_causes import MOST, read_default_tasks, read_unit_tasks, resolve_tasks
from .tasks_causes import SECTIONS as KINDS

_MANAGERS = {MANAGER: "default", USER_CONF: "user_default"}


def adopt_services(units: Mapping[str, Files], nr_open: int | None = None) -> Adopted:
    """Return what the site's lines give units, systemd's managers and logind.

    :param units: The files of each by its name, ``system.conf`` and its like among them.
    :param nr_open: The highest nofile that a process can have, where it is known.
    """
    found = [one for name in units for one in _read_owner(name, units[name], nr_open)]
    return settle(read_services, "services", found)


def _read_owner(name: str, files: Files, nr_open: int | None) -> Iterator[Candidate]:
    if name == LOGIND:
        for at in read_remove_ipc(files):
            yield Candidate(("services", "logind", "remove_ipc"), at.value == 1, at)
        return
    kind = name.rpartition(".")[2]
    if name in _MANAGERS:
        path: tuple[str, ...] = ("services", _MANAGERS[name])
        reading = read_manager_limits(files.manager, files.manager_dropins)
        tasks = read_default_tasks(files)
    else:
        path = ("services", "units", name)
        reading = read_unit_limits(kind, files.main or Source(name, ""), files.dropins)
        tasks = read_unit_tasks(kind, files)
    for line in [*reading.ignored, *([reading.refused] if reading.refused else [])]:
        at = Declaration(line.path, line.line, line.text, "")
        yield Candidate((*path, at.place), "", at, f"has no effect: {line.reason}")
    for one in reading.statements:
        reason = find_excess(one.item, one.limit.hard, nr_open)
        yield Candidate((*path, one.item), write_limit(one.item, one.limit), declare(one), reason)
    for at in tasks:
        yield Candidate((*path, TASKS), _write_tasks(str(at.value)), at)


def _write_tasks(text: str) -> object:
    """Return a number of tasks; a share is not one, and its reader says so."""
    few, many = (resolve_tasks(text, highest) for highest in (0, MOST))
    return text if few != many or few is None else write_value(TASKS, few)


_UNIT_FOLDERS = ("/etc/systemd/system.control", "/etc/systemd/system")


def adopt_tree_services(root: str) -> Adopted:
    """Return what the site's lines give units, systemd's managers and logind."""
    return adopt_services(dict(_read_units(root)), find_nr_open(root))


def _read_units(root: str) -> Iterator[tuple[str, Files]]:
    """Yield systemd's managers and every unit that the site wrote a file or a drop-in for."""
    for name in (MANAGER, USER_CONF, LOGIND):
        found = _drop_ours(read_manager_files(root, name))
        yield name, Files(None, (), found.main, tuple(found.dropins))
    names = {
        find_unit_names(name, root)[1][0]
        for folder in _UNIT_FOLDERS
        for name in _list_units(folder, root)
    }
    for name in sorted(names):
        found = _drop_ours(read_unit_files(name, root))
        yield name, Files(found.main, tuple(found.dropins))


def _list_units(folder: str, root: str) -> Iterator[str]:
    for name in list_folder(folder, root):
        unit = name[: -len(".d")] if name.endswith(".d") else name
        is_link = os.path.islink(under(folder, root) + f"/{name}")
        if unit.rpartition(".")[2] in KINDS and not (is_link and unit == name):
            yield unit


def _drop_ours(found: UnitFiles) -> UnitFiles:
    return found._replace(dropins=[one for one in found.dropins if not _is_ours(one)])


def _is_ours(source: Source) -> bool:
    return source.text.startswith(HEADER)
