# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain from the kernel to a container's limit, link by link."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ..containers.policy import SHM, TASKS, ContainerPolicy, require_item
from ..containers.tasks import find_uid, split_levels
from ..core.cause import Link, cite
from ..core.packed import pack, unpack
from ..core.values import format_quantity
from ..host.look import Look, format_time, read_process, read_start_time
from ..host.owned import ask_owner
from ..kernel.host_read import KernelRead
from .api_read import read_containers
from .compose import find_stated as find_line_of
from .diagnose import SeenContainer, SeenDocker, describe, gather
from .engine_check import judge_new, look_at_running
from .model import find_obstacles, find_stated, predict
from .read import DockerRead
from .remedies import cite_statement, format_pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .outlook import Scene
    from .rootless_check import RootlessRead
    from .running import Running

_NO_POLICY = ContainerPolicy({}, None)
_TIME_LIMIT = 60.0


def trace_docker(place: str, item: str, look: Look) -> list[Link]:
    """Return the chain from the kernel to a new container, or to a running one by its name.

    :raises ValueError: If there is no such place or item, or the files cannot be understood.
    """
    require_item(item)
    for engine, docker in _list_owned(place, look):
        task = partial(_trace_owned, place, item, engine, docker, look)
        told = ask_owner(docker.process.uid, task, _TIME_LIMIT)
        return list(unpack(told, {Link.__name__: Link}))
    return _trace(place, item, "docker", look)


def _list_owned(place: str, look: Look) -> Iterator[tuple[str, RootlessRead]]:
    """Yield the daemon of a user that a place is named after, and what its places begin with."""
    if look.at(DockerRead).rootless:
        from .rootless_check import list_rootless  # On few hosts; it loads what a look imports.

        for engine, docker in list_rootless(look):
            if place.startswith(f"container:{engine}/") or place == f"new-container:{engine}":
                yield engine, docker


def _trace_owned(place: str, item: str, engine: str, docker: RootlessRead, look: Look) -> Any:
    """Return the chain to a container of a user's own daemon. Runs as that user."""
    if not docker.is_own:
        raise ValueError(f"who answers at {docker.address} is not uid {docker.process.uid}")
    return pack(_trace(place, item, engine, look.seen_by(DockerRead, docker)))


def _trace(place: str, item: str, engine: str, look: Look) -> list[Link]:
    if look.at(DockerRead).daemon is None:
        raise ValueError("no dockerd is running on this host")
    new = place == f"new-container:{engine}"
    container = None if new else _find_container(place, engine, look.at(DockerRead).address)
    seen = judge_new(_NO_POLICY, look.at(DockerRead), False, place) if new else SeenDocker([])
    if item == TASKS:
        return list(_trace_tasks(seen, container, look))
    scene = gather(seen, _NO_POLICY, look)
    if scene is None:
        raise ValueError("daemon.json or the unit of dockerd cannot be understood")
    links = [*_trace_base(item, scene, look), *_trace_stated(item, scene, look)]
    if container:
        return [*links, *_trace_container(item, container, look)]
    if item in seen.limits:
        return [*links, Link("container", format_pair(item, seen.limits[item]), "a canary's")]
    why = str(seen.new[0].observation.value) if seen.new else "it could not be measured"
    return [*links, Link("container", "unknown", why)]


def _trace_tasks(seen: SeenDocker, container: SeenContainer | None, look: Look) -> Iterator[Link]:
    """Yield what bounds the tasks of a container: units above, its own option, its cgroup."""
    from ..services.explain import trace_levels

    levels = container.levels if container else seen.levels
    bounds = split_levels(levels, container.container.id if container else "")
    running = describe(container, look.at(DockerRead)) if container else None
    stated = running.tasks if running else None
    units = bounds.list_units(stated is not None)
    yield from trace_levels(units, find_uid(units), look)
    if running and stated is not None:
        yield Link("--pids-limit", format_quantity(stated), f"{running.name}'s own", running.since)
    why = seen.new[0].observation.value if seen.new else "no cgroup of its own bounds tasks"
    yield bounds.link(str(why))


def _find_container(place: str, engine: str, address: str) -> SeenContainer:
    for one in look_at_running(_NO_POLICY, read_containers(address), engine):
        if place == f"container:{engine}/{one.container.name}":
            return one
    accepted = f"new-container:{engine}, container:{engine}/NAME"
    raise ValueError(f"{place!r} is not a place to explain; accepted are {accepted}")


def _trace_base(item: str, scene: Scene, look: Look) -> Iterator[Link]:
    """Yield what there is before dockerd has its say."""
    parent = scene.site.parent
    if item == "nofile":
        source = "fs.nr_open, above which no container starts"
        yield Link("kernel", str(look.at(KernelRead).nr_open), source)
    if parent is None or item == SHM:
        return
    stated = parent.stated.get(item)
    if stated:
        since = look.find_change(stated.at.path)
        yield Link(
            "containerd's unit", format_pair(item, stated.limit), cite_statement(stated.at), since
        )
    else:
        yield Link("containerd's unit", "", f"no file of {parent.unit or 'it'} states it")
    source = f"/proc/{parent.pid}/limits, inherited where nobody states another"
    yield Link("containerd", format_pair(item, parent.limits[item]), source, parent.since)


def _trace_stated(item: str, scene: Scene, look: Look) -> Iterator[Link]:
    """Yield what dockerd's files state, and what follows at its next start."""
    obstacles = find_obstacles(scene.restart)
    for problem in obstacles:
        yield Link("obstacle", "", problem.text)
    if not obstacles:
        for default in find_stated(scene.restart, item):
            at = default.declaration
            since = look.find_change(at.path)
            yield Link("stated", format_pair(item, default.limit), cite_statement(at), since)
        foretold = " or ".join(format_pair(item, one) for one in predict(scene.restart, item))
        yield Link("predicted", foretold or "unknown", "from dockerd's next start on")
    changed = scene.pending.changed
    what = f"it has not read {scene.restart.path}, changed {changed}" if changed else "it read that"
    yield Link("dockerd", "", what, scene.pending.since)


def _trace_container(item: str, seen: SeenContainer, look: Look) -> Iterator[Link]:
    """Yield what a container has of its own, what it was started with, and what it has."""
    running, pid = describe(seen, look.at(DockerRead)), seen.container.pid
    if item == SHM:
        cited = _cite_compose(running, "shm_size")
        what = f"fixed when it was created (ipc {running.ipc or 'unknown'}){cited}"
        yield Link("--shm-size", str(running.shm_size), what)
    elif running.own and item in running.own:
        source = f"{running.name}'s own{_cite_compose(running, 'ulimits', item, 'soft')}"
        yield Link("--ulimit", format_pair(item, running.own[item]), source)
    if running.at_start and item in running.at_start:
        started = format_pair(item, running.at_start[item])
        yield Link("started with", started, "the specification for runc", running.since)
    since = format_time(read_start_time(read_process(pid)))
    value = format_pair(item, seen.limits[item]) if item in seen.limits else "unknown"
    yield Link("container", value, f"/proc/{pid}/limits", since)


def _cite_compose(running: Running, *keys: str) -> str:
    """Return the line of a Compose file that a container has something from, as it is now."""
    at = find_line_of(running.compose, *keys).at if running.compose else None
    return f", by {cite(at)}" if at else ""
