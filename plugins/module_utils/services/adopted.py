# SPDX-License-Identifier: BSD-2-Clause
"""Turn what a site's own units state into the services of a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.adopted import Adopted, Candidate, find_excess, settle, write_limit, write_value
from ..core.declaration import Declaration
from ..systemd.limits import MANAGER, read_manager_limits, read_unit_limits
from ..systemd.unit_file import Source
from ..systemd.want import declare
from .logind_conf import LOGIND, read_remove_ipc
from .plan import USER_CONF
from .policy import TASKS, read_services
from .tasks_max import MOST, read_default_tasks, read_unit_tasks, resolve_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..systemd.model import Files

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
    """Return a number of tasks; a share of what a host can hold is none, and its reader says so."""
    few, many = (resolve_tasks(text, highest) for highest in (0, MOST))
    return text if few != many or few is None else write_value(TASKS, few)
