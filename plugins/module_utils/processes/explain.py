# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain of one limit, from the kernel to a service's process, even where all is well."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..containers.read import find_place
from ..core.cause import Link, cite
from ..core.cgroup import Home, find_home
from ..core.values import format_pair
from ..host.look import Look, format_time, read_limits, read_process, read_start_time
from ..host.manager_read import show_unit
from ..sessions.diagnose import trace_session
from ..systemd.causes import list_slips
from ..systemd.limits import Statement
from ..systemd.model import UnitFacts, predict_unit, rank_statements
from ..systemd.read import World, gather_unit, gather_user_unit
from ..systemd.want import declare
from .logins_read import find_job, find_login
from .read import find_ancestors


def trace_unit(unit: str, item: str, look: Look) -> list[Link]:
    """Return the chain of one limit of a system's service: defaults, files, manager, process.

    :raises OSError: If a file cannot be read.
    :raises ValueError: If there is no such unit, or it cannot be understood.
    """
    facts = gather_unit(unit, look)
    links = []
    if item == "nofile":
        source = "fs.nr_open, above which no limit goes"
        links.append(Link("kernel", str(facts.manager.nr_open), source))
    links += [trace_one(1, item), *trace_files(item, facts, look)]
    shown = show_unit(unit)
    if shown:
        since = format_time(shown.loaded_at) if shown.loaded_at else ""
        source = "systemctl show: what the manager has read"
        links.append(Link("loaded", format_pair(item, shown.limits[item]), source, since))
        if shown.main_pid:
            links.append(trace_one(shown.main_pid, item))
    return links


def trace_files(item: str, facts: UnitFacts, look: Look) -> Iterator[Link]:
    """Yield what the manager gives by itself, what files state, and what follows from that."""
    default = format_pair(item, facts.manager.defaults[item])
    yield Link("default", default, "what systemd gives where no file states it")
    ranked = rank_statements(item, facts)
    for statement in ranked:
        at = declare(statement)
        beaten = "" if statement is ranked[-1] else " (beaten)"
        name = _name_file(statement, facts)
        value = format_pair(item, statement.limit)
        yield Link(name, value, cite(at) + beaten, look.find_change(at.path))
    for slip in list_slips(facts):
        if slip.item == item and slip.code != "unit-line-commented-out":
            source = f"{cite(slip.at)}: {slip.reason}"
            yield Link("no effect", "", source, look.find_change(slip.at.path))
    if facts.pam:
        yield Link("PAM", "", cite(facts.pam.line), look.find_change(facts.pam.line.path))
    given = predict_unit(facts)
    value = format_pair(item, given[item]) if given else "no start"
    yield Link("predicted", value, "what follows from these at the next start")


def _name_file(statement: Statement, facts: UnitFacts) -> str:
    if statement.setting.key.startswith("Default"):
        return "manager default"
    main = facts.files.main
    return "unit file" if main and statement.setting.path == main.path else "drop-in"


def trace_process(pid: int, item: str, look: Look) -> list[Link]:
    """Return the chain of one limit of a process: that of its service or session, then its own.

    :raises OSError: If the process is gone, or a file cannot be read.
    :raises ValueError: If what it lives in cannot be understood.
    """
    process = read_process(pid)
    home = find_home(process.cgroup)
    ancestors = find_ancestors(pid)
    container = find_place(process, ancestors)
    if container:
        source = f"it lives in {container}, whose engine gave it its limits"
        return [Link("container", "", source), trace_one(pid, item)]
    way = find_job(process, ancestors, home.unit) or (
        find_login(process, ancestors, home.session) if home.session else None
    )
    if way:
        links = list(trace_session(way.user, way.service, item, look))
    elif home.unit:
        links = trace_unit(home.unit, item, look)
        links += _trace_user_unit(home, item, look)
    else:
        links = [trace_one(1, item)]
    told = {link.source for link in links}
    above = [one for one in reversed(ancestors) if one.cgroup == process.cgroup]
    for one in (*above, process):
        link = trace_one(one.pid, item)
        if link.source not in told and (one == process or link.value != links[-1].value):
            links.append(link)
    return links


def _trace_user_unit(home: Home, item: str, look: Look) -> Iterator[Link]:
    """Yield what a user's own manager makes of its files."""
    if home.uid is None or not home.user_unit.endswith(".service"):
        return
    manager = World(look).find_user_manager(home.uid)
    if manager:
        own = read_limits(manager.pid)
        facts = gather_user_unit(home.user_unit, home.uid, own, look)
        yield from trace_files(item, facts, look)


def trace_one(pid: int, item: str) -> Link:
    process = read_process(pid)
    name = f"process {pid} ({process.comm})"
    path = os.path.join("/proc", str(pid), "limits")
    since = format_time(read_start_time(process))
    return Link(name, format_pair(item, read_limits(pid)[item]), path, since)
