# SPDX-License-Identifier: BSD-2-Clause
"""Judge running containers, and what a new one would get, against a policy."""

from __future__ import annotations

import time

from .apply.cache import keep_cached, read_cached
from .policy.dockerd_flags import find_config_path, find_socket
from .policy.finding import Finding, Observation, Requirement, judge, judge_limits
from .policy.rlimit import Rlimit
from .probe.docker import find_daemon, read_container_limits, read_containers
from .probe.files import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .policy.schema import DockerPolicy
    from .probe.docker import Daemon

NEW = "new-container:docker"
_CACHE = "canary"


def check_docker(policy: DockerPolicy, canary: str) -> Iterator[Finding]:
    """Yield the findings of every running container and of a new one.

    :param canary: ``auto`` reuses a result while nothing that decides it has changed,
        ``always`` measures again, ``never`` leaves a new container unknown.
    """
    daemon = find_daemon()
    if daemon is None:
        yield from _judge_unknown(policy, "no dockerd is running on this host")
        return
    address = find_socket(daemon.flags)
    try:
        containers = read_containers(address)
    except (OSError, ValueError) as exc:
        yield from _judge_unknown(policy, str(exc))
        return
    for container in containers:
        place = f"container:docker/{container.name}"
        how = f"/proc/{container.pid}/limits"
        try:
            found = read_container_limits(container.pid)
        except OSError:
            continue  # It ended since it was listed.
        yield from judge_limits(place, policy.limits, found.limits, how)
        yield from _judge_shm(place, policy, found.shm_size, how)
    if canary == "never":
        yield from _judge_unknown(policy, "no container was started (canary: never)")
    else:
        yield from _judge_new(policy, daemon, address, fresh=canary == "always")


def _judge_new(
    policy: DockerPolicy, daemon: Daemon, address: str, fresh: bool
) -> Iterator[Finding]:
    try:
        seen = _measure(daemon, address, fresh)
    except (OSError, ValueError) as exc:
        yield from _judge_unknown(policy, str(exc))
        return
    if seen["reason"]:
        yield from _judge_unknown(policy, str(seen["reason"]))
        return
    if seen["refusal"]:
        wanted = Requirement(NEW, "start", "value", exact="a container that starts")
        yield judge(wanted, Observation(str(seen["refusal"]), "canary container"))
        return
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(str(seen["when"]))))
    how = f"canary container of {when}"
    limits = {name: Rlimit(*pair) for name, pair in dict(seen["limits"]).items()}  # type: ignore[call-overload]
    yield from judge_limits(NEW, policy.limits, limits, how)
    yield from _judge_shm(NEW, policy, seen["shm_size"], how)


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
    wanted = Requirement(place, "shm_size", "value", policy.shm_size, unit="bytes")
    if isinstance(size, int):
        yield judge(wanted, Observation(size, how))
    else:
        yield judge(wanted, Observation(None, how, "it has no /dev/shm of its own"))


def _judge_unknown(policy: DockerPolicy, reason: str) -> Iterator[Finding]:
    yield from judge_limits(NEW, policy.limits, None, "", reason)
    if policy.shm_size is not None:
        wanted = Requirement(NEW, "shm_size", "value", policy.shm_size, unit="bytes")
        yield judge(wanted, Observation(None, "", reason))
