# SPDX-License-Identifier: BSD-2-Clause
"""Say why a running container has less than a policy asks, and what its restart will give it.

``docker restart`` merges the container's own limits with the defaults of the dockerd that runs;
the size of /dev/shm is fixed when a container is created.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..containers.policy import SHM
from ..core.cause import Cause, Outlook, Remedy
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Requirement
from ..core.values import UNLIMITED, NamedTuple, Rlimit, format_quantity
from ..shared_memory.size import format_shm_size
from .compose import Compose, blame_shm, blame_tasks, blame_ulimit
from .model import find_obstacles, foretell, judge_all
from .outlook import Scene, blame_defaults, blame_world, find_defaults
from .remedies import choose_limit, format_pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.tasks import Bounds

CODES = {
    "docker-container-older": "the container started before the limits changed, and keeps its own",
    "docker-own-ulimit": "the container was created with --ulimit, which beats every default",
    "docker-changed-inside": "the limit was changed after the start, by the container or prlimit",
    "docker-shm-fixed": "the size of a container's /dev/shm is fixed when it is created",
    "docker-shm-shared": "the container has the /dev/shm of the host or of another container",
    "docker-shm-mounted": "something else is mounted over the container's /dev/shm",
    "docker-own-pids-limit": "the container was created with --pids-limit, which bounds its tasks",
    "docker-pids-changed": "the container's cgroup has another bound than the container was given",
}

_DEVICE = "/dev/shm"  # noqa: S108 - it is looked at, and nothing is put there
_PAGE = 2**16  # A tmpfs is as large as asked for, in whole pages.


class Running(NamedTuple):
    """What is known of a running container.

    ``own`` are the limits of its own --ulimit, ``None`` where they are not known; ``merged`` are
    those with the defaults of the running dockerd; ``at_start`` are those that it was started
    with, ``None`` where they are not known. ``shm_size`` was fixed when it was created.
    ``binds`` tells whether memlock binds its first process; ``compose`` is where it comes from.
    ``tasks`` is its own bound on them, ``None`` where it has none of its own.
    """

    name: str
    limits: Mapping[str, Rlimit]
    merged: Mapping[str, Rlimit] = {}
    own: Mapping[str, Rlimit] | None = None
    at_start: Mapping[str, Rlimit] | None = None
    since: str = ""
    shm_size: int = 0
    ipc: str = ""
    mounts_shm: bool = False
    starts_at_boot: bool = False
    removed_when_stopped: bool = False
    binds: bool = True
    compose: Compose | None = None
    tasks: int | None = None


def explain_running(finding: Finding, running: Running, scene: Scene) -> Finding:
    """Return a finding of a running container with its causes and what comes next.

    Its next restart is one of the container, by the dockerd that runs.
    """
    wanted = finding.requirement
    if finding.status == UNKNOWN:
        return finding
    next_restart = _foretell_restart(wanted, running, scene)
    after_boot = _foretell_boot(wanted, running, scene) if running.starts_at_boot else ""
    outlook = Outlook("", next_restart, after_boot)
    causes: list[Cause] = []
    if finding.status == FAIL:
        shm = wanted.item == SHM
        found = _blame_shm(running, scene) if shm else _blame_limit(wanted, running, scene)
        causes = _note_binding(wanted.item, found, running)
    elif next_restart == FAIL:
        own = _blame_own(wanted, running, scene)
        causes = [own] if own else blame_defaults(wanted, scene)
    elif after_boot == FAIL:
        causes = blame_world(wanted, scene.boot, scene)
    return finding._replace(causes=tuple(causes), outlook=outlook)


def _note_binding(item: str, causes: list[Cause], running: Running) -> list[Cause]:
    """Say of memlock whether it counts: the kernel asks CAP_IPC_LOCK first."""
    if item != "memlock" or not causes:
        return causes
    has = (
        "lacks CAP_IPC_LOCK, so that it binds" if running.binds else "has CAP_IPC_LOCK all the same"
    )
    text = f"{causes[0].text} (its first process {has})"
    return [causes[0]._replace(text=text), *causes[1:]]


def _foretell_restart(wanted: Requirement, running: Running, scene: Scene) -> str:
    if scene.refused:
        return FAIL
    if wanted.item == SHM:
        return _foretell_shm(wanted, running)
    merged = running.merged.get(wanted.item)
    limits = [merged] if merged else find_defaults(wanted.item, scene)
    return _mind_change(wanted, judge_all(wanted, limits), running)


def _foretell_boot(wanted: Requirement, running: Running, scene: Scene) -> str:
    if find_obstacles(scene.boot):
        return FAIL
    if wanted.item == SHM:
        return _foretell_shm(wanted, running)
    if running.own is None:
        return UNKNOWN
    own = running.own.get(wanted.item)
    status = judge_all(wanted, [own]) if own else foretell(wanted, scene.boot)
    return _mind_change(wanted, status, running)


def _mind_change(wanted: Requirement, status: str, running: Running) -> str:
    """Return what is foretold, unless the container's own program may undo it again."""
    return UNKNOWN if status == PASS and _find_change(wanted.item, running) else status


def _foretell_shm(wanted: Requirement, running: Running) -> str:
    if running.mounts_shm or _is_shared(running):
        return UNKNOWN
    return judge_all(wanted, [Rlimit(running.shm_size, running.shm_size)])


def _is_shared(running: Running) -> bool:
    return running.ipc == "host" or running.ipc.startswith("container:")


def _find_change(item: str, running: Running) -> Rlimit | None:
    """Return the limit that a container was started with where it has another by now."""
    started = running.at_start.get(item) if running.at_start else None
    return started if started != running.limits.get(item) else None


def _blame_limit(wanted: Requirement, running: Running, scene: Scene) -> list[Cause]:
    item, causes = wanted.item, []
    started = _find_change(item, running)
    if started:
        causes.append(_blame_change(item, started, running))
        if judge_all(wanted, [started]) == PASS:
            return causes
    defaults = find_defaults(item, scene)
    own = _blame_own(wanted, running, scene)
    causes += [own] if own else []
    if scene.refused or judge_all(wanted, defaults) == FAIL:
        new = blame_defaults(wanted, scene)
        return [*causes, *(new if causes else _then_restart(new, running))]
    if causes or judge_all(wanted, defaults) != PASS or not _is_older(item, running, scene):
        return causes
    return [_blame_age(item, running, defaults[0])]


def _is_older(item: str, running: Running, scene: Scene) -> bool:
    """Tell whether a container has its limit from before what counts now."""
    if running.at_start is None:
        return running.since < scene.pending.since
    if item in running.at_start or item in running.merged:
        return True
    parent = scene.site.parent  # From which it has the limit, now as then.
    return parent is not None and running.since < parent.since


def _find_own(item: str, running: Running, scene: Scene) -> Rlimit | None:
    """Return the container's own limit: what it has beside the defaults, where it is not told."""
    if running.own is not None:
        return running.own.get(item)
    defaults = find_defaults(item, scene)
    merged = running.merged.get(item)
    return merged if defaults and merged not in defaults else None


def _blame_change(item: str, started: Rlimit, running: Running) -> Cause:
    text = (
        f"{running.name} was started with {item} {format_pair(item, started)}: its own program,"
        " or prlimit, changed it since"
    )
    remedy = Remedy(
        f"look for ulimit in what {running.name} starts; after a prlimit, a restart is enough"
    )
    return Cause("docker-changed-inside", text, remedy)


def _blame_own(wanted: Requirement, running: Running, scene: Scene) -> Cause | None:
    item = wanted.item
    own = _find_own(item, running, scene)
    if own is None or judge_all(wanted, [own]) != FAIL:
        return None
    limit = choose_limit(item, scene.site.policy, own)
    has = format_pair(item, own)
    if running.compose:
        bound = wanted.bound if wanted.bound in own._fields else "soft"
        value, asked = getattr(own, bound), _write(limit) if limit else ""
        return blame_ulimit(running.compose, running.name, item, bound, has, value, asked)
    text = f"{running.name} was created with --ulimit {item}={has}, which beats every default"
    instead = f", or with {format_pair(item, limit)}" if limit else ""
    remedy = Remedy(f"create it anew without that{instead} (docker update cannot change it)")
    return Cause("docker-own-ulimit", text, remedy)


def _write(limit: Rlimit) -> str:
    """Return a limit as Compose writes it: in bytes, and -1 for unlimited."""
    soft, hard = (-1 if bound == UNLIMITED else bound for bound in limit)
    return f"{{soft: {soft}, hard: {hard}}}"


def _blame_age(item: str, running: Running, default: Rlimit) -> Cause:
    text = (
        f"{running.name} has run since {running.since} with older limits; started now it would"
        f" have {item} {format_pair(item, default)}"
    )
    remedy = Remedy("restart the container", (("docker", "restart", running.name),))
    return Cause("docker-container-older", text, remedy)


def _then_restart(causes: list[Cause], running: Running) -> list[Cause]:
    """Let the last remedy end with the container's restart; docker removes one of --rm instead."""
    if not causes or running.removed_when_stopped:
        return causes
    last = causes[-1]
    text = f"{last.remedy.text}, and then {running.name}"
    commands = (*last.remedy.commands, ("docker", "restart", running.name))
    remedy = last.remedy._replace(text=text, commands=commands)
    return [*causes[:-1], last._replace(remedy=remedy)]


def _blame_shm(running: Running, scene: Scene) -> list[Cause]:
    size = running.limits[SHM].hard
    limit = choose_limit(SHM, scene.site.policy, running.limits[SHM])
    if limit is None:
        return []
    name, has, asked = running.name, format_pair(SHM, running.limits[SHM]), limit.hard
    anew = Remedy(f"create {name} anew with --shm-size={format_shm_size(asked)}")
    if running.ipc == "host":
        text = f"{name} has the host's /dev/shm (--ipc=host), {has}"
        command = ("mount", "-o", f"remount,size={asked}", _DEVICE)
        remedy = Remedy("make that larger, and say so in /etc/fstab for the next boot", (command,))
        return [Cause("docker-shm-shared", text, remedy)]
    if _is_shared(running):
        text = f"{name} has the /dev/shm of another container (--ipc={running.ipc}), {has}"
        remedy = Remedy(f"create that one anew with --shm-size={format_shm_size(asked)}")
        return [Cause("docker-shm-shared", text, remedy)]
    if running.mounts_shm:
        text = f"{name} has another file system over its /dev/shm, {has}"
        return [Cause("docker-shm-mounted", text, Remedy(f"{anew.text} and without that mount"))]
    if abs(size - running.shm_size) >= _PAGE:
        return []
    if running.compose:
        return [blame_shm(running.compose, name, has, format_shm_size(asked))]
    text = f"{name} was created with a /dev/shm of {has}, which no restart changes"
    return [Cause("docker-shm-fixed", text, anew)]


def find_tasks_causes(wanted: Requirement, bounds: Bounds, running: Running) -> list[Cause]:
    """Return why a container's own bound is too low; nothing where it is not, or systemd has it.

    Nothing of dockerd or daemon.json bounds the tasks of all containers: moby issue 43056.
    """
    least, own, stated = wanted.minimum or 0, bounds.own, running.tasks
    if own is None or own.most >= least:
        return []
    number = -1 if least >= UNLIMITED else least
    update = ("docker", "update", f"--pids-limit={number}", running.name)
    if stated is not None and stated < least:
        if running.compose:
            return [blame_tasks(running.compose, running.name, stated, number)]
        text = f"{running.name} was created with --pids-limit={stated}"
        remedy = Remedy("raise it, for its next starts too", (update,))
        return [Cause("docker-own-pids-limit", text, remedy)]
    if stated is None and bounds.scope:
        return []
    has = format_quantity(own.most)
    given = "no bound" if stated in (None, UNLIMITED) else str(stated)
    text = f"{running.name} was given {given}, and {own.path} has {has}: something changed it"
    remedy = Remedy("state it, for its next starts too", (update,))
    return [Cause("docker-pids-changed", text, remedy)]
