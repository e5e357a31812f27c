# SPDX-License-Identifier: BSD-2-Clause
"""Judge running containers, and what a new one would get, against a policy."""

from __future__ import annotations

import time

from .apply.cache import keep_cached, read_cached
from .explain_docker import START, SeenContainer, SeenDocker, explain_docker, find_dead
from .policy.docker_world import SHM
from .policy.dockerd_flags import find_config_path
from .policy.finding import Finding, Observation, Requirement, judge, judge_limits
from .policy.rlimit import Rlimit
from .probe.docker import read_container_limits, read_containers
from .probe.files import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .policy.schema import DockerPolicy
    from .probe.docker import Container, Daemon
    from .probe.evidence import Evidence

NEW = "new-container:docker"
_CACHE = "canary"


def check_docker(policy: DockerPolicy, canary: str, evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings of every running container and of a new one.

    :param canary: ``auto`` reuses a result while nothing that decides it has changed,
        ``always`` measures again, ``never`` leaves a new container unknown.
    """
    daemon = evidence.docker.daemon
    if daemon is None:
        dead = find_dead(NEW, policy, evidence)
        yield from [dead] if dead else ()
        yield from _judge_unknown(policy, _describe_absence(evidence))
        return
    address = evidence.docker.address
    try:
        containers = read_containers(address)
    except (OSError, ValueError) as exc:
        # While systemd starts it again and again it is there at times, and hangs up.
        dead = find_dead(NEW, policy, evidence) if isinstance(exc, ConnectionError) else None
        yield from [dead] if dead else ()
        yield from _judge_unknown(policy, str(exc))
        return
    running = list(look_at_running(policy, containers))
    if canary == "never":
        reason = "no container was started (canary: never)"
        seen = SeenDocker(list(_judge_unknown(policy, reason)), running=running)
    else:
        seen = judge_new(policy, daemon, address, canary == "always")._replace(running=running)
    yield from explain_docker(seen, policy, evidence)


def _describe_absence(evidence: Evidence) -> str:
    """Say that no dockerd runs, and what there is of it."""
    from .apply.docker import read_service
    from .policy.docker_service import find_wait

    user = evidence.docker.rootless
    what = f"but a rootless one of uid {user.uid} (pid {user.pid}) " if user else ""
    return f"no dockerd {what}is running on this host until {find_wait(read_service(None))}"


def look_at_running(
    policy: DockerPolicy, containers: Iterable[Container]
) -> Iterator[SeenContainer]:
    """Yield the containers that still run when they are looked at, each judged."""
    for container in containers:
        place = f"container:docker/{container.name}"
        how = f"/proc/{container.pid}/limits"
        try:
            found = read_container_limits(container.pid)
        except OSError:
            continue  # It ended since it was listed.
        findings = judge_limits(place, policy.limits, found.limits, how)
        findings += _judge_shm(place, policy, found.shm_size, how)
        yield SeenContainer(container, _with_shm(found.limits, found.shm_size), findings)


def _with_shm(limits: dict[str, Rlimit], size: int | None) -> dict[str, Rlimit]:
    return limits if size is None else {**limits, SHM: Rlimit(size, size)}


def judge_new(policy: DockerPolicy, daemon: Daemon, address: str, fresh: bool) -> SeenDocker:
    """Judge what a new container gets, which a canary shows.

    :param fresh: Measure again, even where nothing that decides it has changed.
    """
    try:
        seen = _measure(daemon, address, fresh)
    except (OSError, ValueError) as exc:
        return SeenDocker(list(_judge_unknown(policy, str(exc))))
    if seen["reason"]:
        return SeenDocker(list(_judge_unknown(policy, str(seen["reason"]))))
    if seen["refusal"]:
        wanted = Requirement(NEW, START, "value", exact="a container that starts")
        return SeenDocker([judge(wanted, Observation(str(seen["refusal"]), "canary container"))])
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(str(seen["when"]))))
    how = f"canary container of {when}"
    limits = {name: Rlimit(*pair) for name, pair in dict(seen["limits"]).items()}  # type: ignore[call-overload]
    size = seen["shm_size"]
    findings = judge_limits(NEW, policy.limits, limits, how)
    findings += _judge_shm(NEW, policy, size, how)
    return SeenDocker(findings, _with_shm(limits, size if isinstance(size, int) else None))


def _measure(daemon: Daemon, address: str, fresh: bool) -> dict[str, object]:
    """Return a canary's result, a kept one where it still holds."""
    from .probe.canary_key import read_canary_key

    key = read_canary_key(daemon, read_bytes(find_config_path(daemon.flags)) or b"")
    kept = None if fresh else read_cached(_CACHE, key)
    if isinstance(kept, dict):
        return kept
    from .probe.canary import run_canary  # Long, and seldom needed.

    result = run_canary(address)
    seen: dict[str, object] = {
        "when": time.time(),
        "limits": result.found.limits if result.found else {},
        "shm_size": result.found.shm_size if result.found else None,
        "refusal": result.refusal,
        "reason": result.reason,
    }
    if not result.reason:
        keep_cached(_CACHE, key, seen)
    return seen


def _judge_shm(place: str, policy: DockerPolicy, size: object, how: str) -> Iterator[Finding]:
    if policy.shm_size is None:
        return
    wanted = Requirement(place, SHM, "value", policy.shm_size, unit="bytes")
    if isinstance(size, int):
        yield judge(wanted, Observation(size, how))
    else:
        yield judge(wanted, Observation(None, how, "it has no /dev/shm of its own"))


def _judge_unknown(policy: DockerPolicy, reason: str) -> Iterator[Finding]:
    yield from judge_limits(NEW, policy.limits, None, "", reason)
    if policy.shm_size is not None:
        wanted = Requirement(NEW, SHM, "value", policy.shm_size, unit="bytes")
        yield judge(wanted, Observation(None, "", reason))
