# SPDX-License-Identifier: BSD-2-Clause
"""Say why containers fall short, and what they will have after a restart and a boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from ..containers.findings import judge_start
from ..containers.policy import TASKS, ContainerPolicy
from ..containers.tasks import Bounds, Given, split_levels
from ..core.cause import Cause, Outlook
from ..core.finding import FAIL, Finding
from ..core.process_owner import own_running
from ..core.report import START
from ..core.values import RLIMITS, UNLIMITED, NamedTuple, Rlimit
from ..host.files import read_change
from ..host.look import Look, format_time, may_lock_memory, read_limits, read_start_time
from ..kernel.host_read import KernelRead, find_nr_open_at_boot, find_nr_open_line
from .model import Parent, World, find_obstacles, find_stated, inherit, inherit_at_start
from .outlook import Scene, explain_new, explain_start
from .read import (
    DockerRead,
    UnitRead,
    find_stated_by_people,
    parse_ulimits,
    read_spec_limits,
    read_unit_stated,
)
from .site import Pending, Site, Tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..systemd.tasks import Level
    from .api_read import Container
    from .running import Running


class SeenContainer(NamedTuple):
    """A running container, its limits with that of /dev/shm among them, and its findings.

    ``levels`` are the cgroups that bound its tasks.
    """

    container: Container
    limits: Mapping[str, Rlimit]
    findings: Sequence[Finding]
    levels: Sequence[Level] = ()


class SeenDocker(NamedTuple):
    """The findings of one look; ``limits`` are those of a new container, empty if not measured."""

    new: Sequence[Finding]
    limits: Mapping[str, Rlimit] = {}
    running: Sequence[SeenContainer] = ()
    levels: Sequence[Level] = ()


def explain_docker(seen: SeenDocker, policy: ContainerPolicy, look: Look) -> Iterator[Finding]:
    """Yield the findings with their causes, and with what comes next."""
    scene = gather(seen, policy, look)
    if scene is None:
        for one in seen.running:
            yield from map(own_running, one.findings)
        yield from seen.new
        return
    for one in seen.running:
        yield from map(own_running, _explain_running(one, scene, look.at(DockerRead)))
    for finding in seen.new:
        if finding.requirement.item == TASKS:
            yield _explain_tasks(finding, split_levels(seen.levels), None, ())
            continue
        start = finding.requirement.item == START
        yield explain_start(finding, scene) if start else explain_new(finding, scene)


def _explain_running(seen: SeenContainer, scene: Scene, docker: DockerRead) -> Iterator[Finding]:
    from .running import explain_running, find_tasks_causes  # Where containers run.

    running, bounds = describe(seen, docker), split_levels(seen.levels, seen.container.id)
    for finding in seen.findings:
        if finding.requirement.item == TASKS:
            causes = find_tasks_causes(finding.requirement, bounds, running)
            yield _explain_tasks(finding, bounds, running.tasks, causes)
        else:
            yield explain_running(finding, running, scene)


def _explain_tasks(
    finding: Finding, bounds: Bounds, stated: int | None, causes: Sequence[Cause]
) -> Finding:
    from ..services.diagnose import explain_container_tasks  # Where tasks are asked for.

    return explain_container_tasks(finding, bounds, Given(stated), causes)


def find_dead(place: str, policy: ContainerPolicy, look: Look) -> Finding | None:
    """Return the finding that dockerd cannot start, where it does not run and files say why."""
    world = _read_world(look, look.at(KernelRead).nr_open)
    if world is None:
        return None
    stoppers = [one for one in find_obstacles(world) if one.stops == "dockerd"]
    if not stoppers:
        return None
    from .causes import find_docker_causes
    from .unit_read import find_dockerd  # Long, and seldom needed.

    if find_dockerd() is None:
        return None
    docker = look.at(DockerRead)
    site = Site(policy, Tools(docker.restarted_by, False, docker.flag_files))
    finding = judge_start(place, "no dockerd", stoppers[0].text)
    causes = tuple(find_docker_causes(finding.requirement, world, site))
    return finding._replace(causes=causes, outlook=Outlook("", FAIL, FAIL))


def gather(seen: SeenDocker, policy: ContainerPolicy, look: Look) -> Scene | None:
    """Return all that decides what containers get, or nothing where that is not known."""
    docker, daemon = look.at(DockerRead), look.at(DockerRead).daemon
    world = _read_world(look, look.at(KernelRead).nr_open)
    if world is None or daemon is None:
        return None
    parent = _read_parent(docker)
    nr_open = find_nr_open_at_boot(look)
    started, changed = read_start_time(daemon.process), docker.config_changed
    late = format_time(changed) if changed > started else ""
    pending = Pending(format_time(started), late, docker.running_flags)
    stops = bool(seen.running) and not docker.live_restore
    tools = Tools(docker.restarted_by, stops, docker.flag_files)
    foreign = docker.unit and not (parent and parent.unit == docker.unit)
    own = find_stated_by_people(docker.unit, docker.unit_files) if foreign else {}
    line = find_nr_open_line(look)
    site = Site(policy, tools, parent, own, line, docker.usual_config, nr_open)
    refused = any(one.requirement.item == START for one in seen.new)
    now = {item: inherit(parent, item) for item in RLIMITS} if parent else {}
    later = {item: inherit_at_start(parent, item, nr_open) for item in RLIMITS} if parent else {}
    boot = world._replace(base=later, nr_open=nr_open)
    return _pin(Scene(world._replace(base=now), boot, site, pending, seen.limits, refused))


def _pin(scene: Scene) -> Scene:
    """Of the limits that a new container may inherit, keep the one that was measured."""
    if scene.differs or find_obstacles(scene.restart):
        return scene
    base = scene.restart.base
    measured = {
        item: (limit,)
        for item, limit in scene.seen.items()
        if limit in base.get(item, (limit,)) and not find_stated(scene.restart, item)
    }
    parent = scene.site.parent
    lasting = {} if parent is None or parent.changed else measured
    restart = scene.restart._replace(base={**base, **measured})
    boot = scene.boot._replace(base={**scene.boot.base, **lasting})
    return scene._replace(restart=restart, boot=boot)


def _read_world(look: Look, nr_open: int) -> World | None:
    """Return what the next dockerd will find; nothing where its files cannot be understood."""
    docker = look.at(DockerRead)
    try:
        world = World(docker.config, docker.config_path, docker.flags, {}, nr_open or UNLIMITED)
    except (OSError, ValueError):
        return None
    if find_obstacles(world):  # Some releases mind what others do not.
        world = world._replace(version=docker.version)
    return world


def _read_parent(docker: DockerRead) -> Parent | None:
    process = docker.containerd
    if process is None:
        return None
    unit = docker.containerd_unit
    read = read_unit_stated(unit) if unit else UnitRead({}, ())
    started = read_start_time(process)
    try:
        limits = read_limits(process.pid)
    except OSError:
        return None
    return Parent(
        process.pid,
        unit,
        limits,
        format_time(started),
        read.stated,
        any(read_change(path) > started for path in read.paths),
    )


def describe(seen: SeenContainer, docker: DockerRead) -> Running:
    """Return what is known of a running container."""
    from .running import Running

    container = seen.container
    details = container.details
    host = details.get("HostConfig", {})
    mounts = [str(mount.get("Destination")) for mount in details.get("Mounts") or ()]
    mounts += list(host.get("Tmpfs") or ())
    policy = host.get("RestartPolicy") or {}
    return Running(
        container.name,
        seen.limits,
        parse_ulimits(host.get("Ulimits")),
        docker.read_own_ulimits(details),
        read_spec_limits(container.id),
        _read_time(str(details.get("State", {}).get("StartedAt", ""))),
        int(host.get("ShmSize") or 0),
        str(host.get("IpcMode") or ""),
        any(path.rstrip("/") == "/dev/shm" for path in mounts),  # noqa: S108 - no file of ours
        policy.get("Name") in ("always", "unless-stopped"),
        bool(host.get("AutoRemove")),
        not may_lock_memory(container.pid),
        docker.read_compose(details),
        _read_tasks(host.get("PidsLimit")),
    )


def _read_tasks(limit: object) -> int | None:
    """Return the engine's own bound on tasks; nothing where it was told none.

    Source: ``getPidsLimit()`` of dockerd, for which 0 and less mean none.
    """
    if not isinstance(limit, int):
        return None
    return limit if limit > 0 else UNLIMITED


def _read_time(text: str) -> str:
    """Return the engine's time, which is UTC, as every other time here is written."""
    try:
        return format_time(datetime.fromisoformat(f"{text[:19]}+00:00").timestamp())
    except ValueError:
        return ""
