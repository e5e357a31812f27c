# SPDX-License-Identifier: BSD-2-Clause
"""Judge the running containers of one dockerd, and what a new one would get."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from ..containers.findings import (
    NEVER,
    Canary,
    ContainerLimits,
    judge_canary,
    judge_container,
    judge_container_unknown,
)
from ..containers.limits_read import read_container_limits
from ..containers.policy import SHM, TASKS, ContainerPolicy
from ..containers.tasks import find_uid, split_levels
from ..core.finding import FAIL, Finding, Observation, Requirement, judge
from ..core.packed import pack, unpack
from ..core.values import NamedTuple, Rlimit
from ..host.look import Look
from ..systemd.tasks import Level
from ..systemd.tasks_read import read_again
from ..write.cache import keep_cached, read_cached
from .api_read import Container, UntoldError, read_containers
from .diagnose import SeenContainer, SeenDocker, explain_docker, find_dead
from .read import DockerRead


class Kept(NamedTuple):
    """The result of a canary, and when it ran, in seconds since the epoch."""

    when: int
    canary: Canary


class Cache:
    """Where the result of a canary is kept: in a file of root's, until the next boot."""

    def read(self, key: str) -> object | None:
        return read_cached(CACHE, key)

    def keep(self, key: str, content: object) -> None:
        keep_cached(CACHE, key, content)


CACHE = "canary"
_ROOTS = Cache()


def check_engine(
    policy: ContainerPolicy, canary: str, look: Look, engine: str = "docker", cache: Cache = _ROOTS
) -> Iterator[Finding]:
    """Yield the findings of one daemon that runs.

    :param engine: What its places begin with.
    """
    docker, new = look.at(DockerRead), f"new-container:{engine}"
    try:
        containers = read_containers(docker.address)
    except UntoldError as exc:
        containers = exc.told
        yield from judge_container_unknown(f"container:{engine}", policy, str(exc))
    except (OSError, ValueError) as exc:
        # While systemd starts it again and again it is there at times, and hangs up.
        dead = find_dead(new, policy, look) if isinstance(exc, ConnectionError) else None
        yield from [dead] if dead else ()
        yield from judge_container_unknown(new, policy, str(exc))
        return
    running = list(look_at_running(policy, containers, engine))
    if canary == "never":
        seen = SeenDocker(judge_container_unknown(new, policy, NEVER), running=running)
    else:
        fresh = canary == "always"
        seen = judge_new(policy, docker, fresh, new, cache)._replace(running=running)
    yield from explain_docker(seen, policy, look)


def look_at_running(
    policy: ContainerPolicy, containers: Iterable[Container], engine: str = "docker"
) -> Iterator[SeenContainer]:
    """Yield the containers that still run when they are looked at, each judged."""
    for container in containers:
        place = f"container:{engine}/{container.name}"
        how = f"/proc/{container.pid}/limits"
        try:
            found = read_container_limits(container.pid)
        except OSError:
            continue  # It ended since it was listed.
        findings = judge_container(place, policy, found, how)
        yield SeenContainer(container, _with_shm(found), findings, found.levels)


def _with_shm(seen: ContainerLimits) -> dict[str, Rlimit]:
    size = seen.shm_size
    return seen.limits if size is None else {**seen.limits, SHM: Rlimit(size, size)}


def judge_new(
    policy: ContainerPolicy, docker: DockerRead, fresh: bool, place: str, cache: Cache = _ROOTS
) -> SeenDocker:
    """Judge what a new container gets, which a canary shows.

    :param fresh: Measure again, even where nothing that decides it has changed.
    """
    try:
        kept = _measure(policy, docker, fresh, cache)
    except (OSError, ValueError) as exc:
        return SeenDocker(judge_container_unknown(place, policy, str(exc)))
    seen = kept.canary
    if seen.found:  # The units above it change without a new dockerd.
        levels = tuple(read_again(seen.found.levels))
        seen = seen._replace(found=seen.found._replace(levels=levels))
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(kept.when))
    findings = judge_canary(place, policy, seen, f"canary container of {when}")
    if seen.found is None:
        return SeenDocker(findings)
    return SeenDocker(findings, _with_shm(seen.found), levels=seen.found.levels)


def _is_doubtful(policy: ContainerPolicy, seen: Canary) -> bool:
    """Tell whether a canary's own bound on tasks falls short, or will by the files of its scope.

    Both change without a new dockerd.
    """
    bounds = split_levels(seen.found.levels if seen.found else ())
    if bounds.own is None or policy.tasks is None:
        return False
    from ..services.diagnose import explain_tasks  # Where tasks are asked for.

    finding = judge(Requirement("", TASKS, "value", policy.tasks), Observation(bounds.own.most, ""))
    if bounds.scope:
        finding = explain_tasks(finding, [bounds.scope], find_uid(bounds.list_units(True)))
    return FAIL in (finding.status, *finding.outlook)


def _measure(policy: ContainerPolicy, docker: DockerRead, fresh: bool, cache: Cache) -> Kept:
    """Return a canary's result, a kept one where it still holds."""
    from .api_read import read_canary_key

    daemon = docker.daemon
    if daemon is None:
        raise ValueError("no dockerd is running")
    key = read_canary_key(daemon, docker.read_running_config())
    kept = None if fresh else _read_kept(cache.read(key))
    if kept and not _is_doubtful(policy, kept.canary):
        return kept
    from .measure import run_canary  # Long, and seldom needed.

    seen = Kept(int(time.time()), run_canary(docker.address))
    if not seen.canary.reason:
        cache.keep(key, pack(seen))
    return seen


def _read_kept(entry: object) -> Kept | None:
    """Return what was kept; nothing where there is nothing of that form."""
    kinds = (Kept, Canary, ContainerLimits, Rlimit, Level)
    try:
        kept = unpack(entry, {kind.__name__: kind for kind in kinds})
    except ValueError:
        return None
    return kept if isinstance(kept, Kept) else None
