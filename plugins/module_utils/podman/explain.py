# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain from the kernel to a new container of Podman or containerd, link by link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..containers.cgroup import PODMAN
from ..containers.limits_read import read_container_limits
from ..containers.policy import SHM, TASKS, require_item
from ..containers.read import RunningContainer, find_running
from ..containers.spec import Started
from ..containers.tasks import find_uid, split_levels
from ..core.cause import Link, cite
from ..core.values import RLIMITS, format_pair, format_quantity
from ..host.look import Look, format_time, read_limits, read_start_time
from ..kernel.host_read import KernelRead
from ..systemd.tasks import Level
from ..systemd.tasks_read import read_levels
from .causes import PodmanFacts
from .check import name_owner, name_running, open_session
from .containers_conf import DEFAULT_TASKS, TASKS_KEY
from .diagnose import gather_podman
from .measure import Caller, run_podman_canary
from .read import find_quadlet, read_created


def trace_podman(user: str, item: str, look: Look) -> list[Link]:
    """Return the chain of one limit of a new container: of root, or of a user's own.

    :raises ValueError: If there is no such item, or the files cannot be read.
    """
    require_item(item)
    session = open_session(user)
    facts = gather_podman(user, look, session.limits, session.way)
    if session.reason or facts is None:
        raise ValueError(session.reason or "the files of Podman cannot be read")
    links = trace_kernel(item, look)
    if item in session.limits:
        source = f"of {user} through {session.way}: the ceiling of a rootless container"
        links.append(Link("session", format_pair(item, session.limits[item]), source))
    links += trace_files(item, facts, look)
    seen = run_podman_canary(Caller(user, session.limits))
    if item == TASKS:
        return _trace_tasks(links, seen.found.levels if seen.found else (), "", look)
    if seen.found is None:
        return [*links, Link("container", "none", seen.refusal or seen.reason)]
    if item == SHM:
        return [*links, Link("container", str(seen.found.shm_size), "a canary's /dev/shm")]
    return [*links, Link("container", format_pair(item, seen.found.limits[item]), "a canary's")]


def trace_running(place: str, item: str, look: Look) -> list[Link]:
    """Return the chain of one limit of a running container, named as ``check`` names it.

    :raises OSError: If it ended meanwhile.
    :raises ValueError: If there is no such container or item.
    """
    require_item(item)
    one, links = _find(place, look), trace_kernel(item, look)
    facts = gather_podman(name_owner(one.owner), look, {}, "")
    if facts:
        links += trace_files(item, facts, look)
    quadlet = find_quadlet(one.process.cgroup)
    stated = quadlet.stated.get(item) if quadlet else None
    if quadlet and stated:
        since = look.find_change(stated.at.path)
        links.append(Link(quadlet.unit, stated.entry, cite(stated.at), since))
    links += _trace_created(item, read_created(one))
    if item == TASKS:
        return _trace_tasks(links, read_levels(one.process.cgroup), one.container.id, look)
    pid = one.process.pid
    since = format_time(read_start_time(one.process))
    if item == SHM:
        size = read_container_limits(pid).shm_size
        value = "unknown" if size is None else str(size)
        return [*links, Link("container", value, f"/proc/{pid}/root/dev/shm", since)]
    value = format_pair(item, read_limits(pid)[item])
    return [*links, Link("container", value, f"/proc/{pid}/limits", since)]


def _find(place: str, look: Look) -> RunningContainer:
    for one in find_running(look.processes, (PODMAN,)):
        if name_running(one) == place:
            return one
    raise ValueError(f"{place!r} is not running")


def _trace_created(item: str, created: Started) -> Iterator[Link]:
    since, source = created.since, "the specification that its runtime was given"
    if item == TASKS:
        if created.tasks is not None:
            yield Link("created", format_quantity(created.tasks), source, since)
    elif created.limits is None or item == SHM:
        yield Link("created", "", "with what is not known", since)
    elif item in created.limits:
        yield Link("created", format_pair(item, created.limits[item]), source, since)


def _trace_tasks(
    links: Sequence[Link], levels: Sequence[Level], identity: str, look: Look
) -> list[Link]:
    """Return the chain with what bounds the tasks: the units above a container, files, its own."""
    from ..services.explain import trace_levels

    bounds = split_levels(levels, identity)
    units = bounds.list_units(True)
    above = trace_levels(units, find_uid(units), look)
    return [*above, *links, bounds.link()]


def trace_kernel(item: str, look: Look) -> list[Link]:
    if item != "nofile":
        return []
    source = "fs.nr_open, above which no container starts"
    return [Link("kernel", str(look.at(KernelRead).nr_open), source)]


def trace_files(item: str, facts: PodmanFacts, look: Look) -> Iterator[Link]:
    """Yield what each file states; where a list leaves the limit out, that takes it away."""
    if facts.broken:
        yield Link("obstacle", "", str(facts.broken), look.find_change(facts.broken.at.path))
        return
    given = facts.defaults
    shm, winner = given.shm, given.ulimits.get(item)
    for one in facts.stated:
        since = look.find_change(one.path)
        entries = [each for each in (one.block.ulimits if one.block else ()) if each.item == item]
        for each in entries:
            beaten = "" if winner and each.at == winner.at else " (beaten)"
            yield Link("stated", format_pair(item, each.limit), cite(each.at) + beaten, since)
        if one.block and not entries and item in RLIMITS:
            yield Link("left out", "", f"{cite(one.block.at)} states it not", since)
        if item == SHM and one.shm:
            beaten = "" if one.shm == shm else " (beaten)"
            yield Link("stated", str(one.shm.value), cite(one.shm) + beaten, since)
    if item == TASKS:
        yield from _trace_tasks_files(facts, look)
    for lost in facts.unread:
        yield Link("no effect", "", f"{cite(lost.at)}: {lost.reason}")


def _trace_tasks_files(facts: PodmanFacts, look: Look) -> Iterator[Link]:
    winner = facts.defaults.tasks
    for at in filter(None, (one.tasks for one in facts.stated)):
        beaten = "" if at == winner else " (beaten)"
        yield Link("stated", str(at.value), cite(at) + beaten, look.find_change(at.path))
    if winner is None:
        yield Link("default", str(DEFAULT_TASKS), f"no file states {TASKS_KEY}")
