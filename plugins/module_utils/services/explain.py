# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain to what a new service gets, and to how many tasks a unit may hold."""

from __future__ import annotations

import pwd
from collections.abc import Iterator, Sequence

from ..core.cause import Link, cite
from ..core.values import RLIMITS, format_pair, format_quantity
from ..host.look import Look, find_user_managers, read_limits
from ..processes.explain import trace_files, trace_one
from ..systemd.read import gather_default, gather_user_default
from ..systemd.tasks import Level, cut_levels
from ..systemd.tasks_read import read_levels
from .diagnose import gather_levels
from .measure import start_service
from .policy import TASKS
from .read import find_owned, read_most_tasks
from .tasks_causes import (
    TasksLevel,
    find_default,
    predict_level,
    read_default_tasks,
    read_unit_tasks,
)

NEW = "new-service:"
_SYSTEM = "system"


def trace_new_service(place: str, item: str, look: Look) -> list[Link]:
    """Return the chain to what a service gets that states nothing, and what one got just now.

    :param place: ``new-service:system``, or of a user by name.
    :raises OSError: If a file cannot be read.
    :raises ValueError: If there is no such manager, or it cannot be understood.
    """
    name = place[len(NEW) :]
    uid = None if name == _SYSTEM else _find_manager(name, look)
    new = start_service(uid)
    if item == TASKS:
        return list(trace_levels(new.levels, uid, look))
    if item not in RLIMITS:
        raise ValueError(f"{item!r} is not a limit; accepted are {', '.join((*RLIMITS, TASKS))}")
    if uid is None:
        pid, facts = 1, gather_default(look)
    else:
        pid = find_user_managers(look.processes)[uid].pid
        facts = gather_user_default(uid, read_limits(pid), look)
    got = format_pair(item, new.limits[item]) if new.limits else ""
    how = "a service that was started to see" if new.limits else new.reason
    links = [trace_one(pid, item), *trace_files(item, facts, look)]
    if item == "nofile":
        source = "fs.nr_open, above which no limit goes"
        links.insert(0, Link("kernel", str(facts.manager.nr_open), source))
    return [*links, Link("new service", got, how)]


def _find_manager(user: str, look: Look) -> int:
    """Return the uid of a user whose service manager runs.

    :raises ValueError: If it does not, or there is no such user.
    """
    try:
        uid = pwd.getpwnam(user).pw_uid
    except KeyError:
        raise ValueError(f"there is no user {user!r}") from None
    if uid not in find_user_managers(look.processes):
        raise ValueError(f"no service manager of {user} is running")
    return uid


def trace_tasks(unit: str, look: Look) -> list[Link]:
    """Return all that bounds the tasks of a running unit, the widest first.

    :raises OSError: If a file cannot be read.
    :raises ValueError: If no such unit is running.
    """
    found = find_owned([unit], look.processes)[unit]
    names = list(found)[:1]
    levels = [one for name in names for one in cut_levels(read_levels(found[name][0].cgroup), name)]
    if not levels:
        raise ValueError(f"{unit} is not running, or its cgroup bounds no tasks")
    return list(trace_levels(levels, None, look))


def trace_levels(levels: Sequence[Level], uid: int | None, look: Look) -> Iterator[Link]:
    """Yield what the kernel can hold, and for each unit what its files say and its cgroup has."""
    highest = read_most_tasks()
    source = "the lower of kernel.pid_max and kernel.threads-max"
    yield Link("kernel", str(highest), source)
    for level in reversed(gather_levels(levels, uid)):
        given = predict_level(level, highest)
        value = "unknown" if given is None else format_quantity(given)
        at, source = _find_source(level, highest)
        yield Link(level.unit, value, source, look.find_change(at) if at else "")
        yield Link("cgroup", format_quantity(level.seen or 0), level.path)


def _find_source(level: TasksLevel, highest: int) -> tuple[str, str]:
    """Return the file that bounds the tasks of a unit, and the line."""
    own = [] if level.defaults_of else read_unit_tasks(level.kind, level.files)
    ranked = own if own and own[-1].value else read_default_tasks(level.files)
    if level.kind == "slice" and ranked is not own:
        return "", "no file bounds it"
    if ranked:
        return ranked[-1].path, cite(ranked[-1])
    vendor = level.files.vendor
    if vendor.tasks_share is None:
        return "", f"systemd's default, which is not known of {vendor.name}"
    given = find_default(level.files, highest)
    return "", f"systemd's default, {vendor.tasks_share}% of all: {given}"
