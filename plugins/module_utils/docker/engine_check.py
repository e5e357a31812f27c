# SPDX-License-Identifier: BSD-2-Clause
"""Judge the running containers of one dockerd, and what a new one would get."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from ..containers.findings import judge_container, judge_container_unknown
from ..containers.limits_read import read_container_limits
from ..containers.policy import SHM, TASKS
from ..containers.tasks import find_uid, split_levels
from ..core.finding import FAIL, Finding, Observation, Requirement, judge
from ..core.rlimit import Rlimit
from ..systemd.tasks import Level
from ..systemd.tasks_read import read_again
from ..write.cache import keep_cached, read_cached
from .api_read import Container, UntoldError, read_containers
from .diagnose import START, SeenContainer, SeenDocker, explain_docker, find_dead
from .read import DockerRead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.look import Look
    from .policy import DockerPolicy


class Cache:
    """Where the result of a canary is kept: in a file of root's, until the next boot."""

    def read(self, key: str) -> object | None:
        return read_cached(CACHE, key)

    def keep(self, key: str, content: object) -> None:
        keep_cached(CACHE, key, content)


CACHE = "canary"
_ROOTS = Cache()


def check_engine(
    policy: DockerPolicy,
    canary: str,
    look: Look,
    engine: str = "docker",
    cache: Cache = _ROOTS,
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
        reason = "no container was started (canary: never)"
        seen = SeenDocker(judge_container_unknown(new, policy, reason), running=running)
    else:
        fresh = canary == "always"
        seen = judge_new(policy, docker, fresh, new, cache)._replace(running=running)
    yield from explain_docker(seen, policy, look)


def look_at_running(
    policy: DockerPolicy, containers: Iterable[Container], engine: str = "docker"
) -> Iterator[SeenContainer]:
    """Yield the containers that still run when they are looked at, each judged."""
    for container in containers:
        place = f"container:{engine}/{container.name}"
        how = f"/proc/{container.pid}/limits"
        try:
            found = read_container_limits(container.pid)
        except OSError:
            continue  # It ended since it was listed.
        levels = found.levels
        findings = judge_container(place, policy, found.limits, found.shm_size, how, levels)
        limits = _with_shm(found.limits, found.shm_size)
        yield SeenContainer(container, limits, findings, levels)


def _with_shm(limits: dict[str, Rlimit], size: int | None) -> dict[str, Rlimit]:
    return limits if size is None else {**limits, SHM: Rlimit(size, size)}


def judge_new(
    policy: DockerPolicy, docker: DockerRead, fresh: bool, place: str, cache: Cache = _ROOTS
) -> SeenDocker:
    """Judge what a new container gets, which a canary shows.

    :param fresh: Measure again, even where nothing that decides it has changed.
    """
    try:
        seen = _measure(policy, docker, fresh, cache)
    except (OSError, ValueError) as exc:
        return SeenDocker(judge_container_unknown(place, policy, str(exc)))
    if seen["reason"]:
        return SeenDocker(judge_container_unknown(place, policy, str(seen["reason"])))
    if seen["refusal"]:
        wanted = Requirement(place, START, "value", exact="a container that starts")
        return SeenDocker([judge(wanted, Observation(str(seen["refusal"]), "canary container"))])
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(str(seen["when"]))))
    how = f"canary container of {when}"
    limits = {name: Rlimit(*pair) for name, pair in dict(seen["limits"]).items()}  # type: ignore[call-overload]
    size = seen["shm_size"] if isinstance(seen["shm_size"], int) else None
    levels = read_again(Level(*level) for level in seen["levels"])  # type: ignore[attr-defined]
    findings = judge_container(place, policy, limits, size, how, levels)
    return SeenDocker(findings, _with_shm(limits, size), levels=levels)


def _is_doubtful(policy: DockerPolicy, seen: Mapping[str, object]) -> bool:
    """Tell whether a canary's own bound on tasks falls short, or will by the files of its scope.

    Both change without a new dockerd.
    """
    levels = [Level(*level) for level in seen["levels"]]  # type: ignore[attr-defined]
    bounds = split_levels(levels)
    if bounds.own is None or policy.tasks is None:
        return False
    from ..services.diagnose import explain_tasks  # Where tasks are asked for.

    finding = judge(Requirement("", TASKS, "value", policy.tasks), Observation(bounds.own.most, ""))
    if bounds.scope:
        finding = explain_tasks(finding, [bounds.scope], find_uid(bounds.list_units(True)))
    return FAIL in (finding.status, *finding.outlook)


def _measure(
    policy: DockerPolicy, docker: DockerRead, fresh: bool, cache: Cache
) -> dict[str, object]:
    """Return a canary's result, a kept one where it still holds."""
    from .canary_key_read import read_canary_key

    daemon = docker.daemon
    if daemon is None:
        raise ValueError("no dockerd is running")
    key = read_canary_key(daemon, docker.read_running_config())
    kept = None if fresh else cache.read(key)
    if isinstance(kept, dict) and "levels" in kept and not _is_doubtful(policy, kept):
        return kept
    from .measure import run_canary  # Long, and seldom needed.

    result = run_canary(docker.address)
    seen: dict[str, object] = {
        "when": time.time(),
        "limits": result.found.limits if result.found else {},
        "shm_size": result.found.shm_size if result.found else None,
        "levels": result.found.levels if result.found else (),
        "refusal": result.refusal,
        "reason": result.reason,
    }
    if not result.reason:
        cache.keep(key, seen)
    return seen
