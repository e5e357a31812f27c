# SPDX-License-Identifier: BSD-2-Clause
"""Judge a container of Docker or Podman: its limits, and the size of its /dev/shm."""

from __future__ import annotations

from ..core.finding import Finding, Observation, Requirement, judge, judge_limits, require_limits
from .policy import SHM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.rlimit import Rlimit
    from .policy import Asked


def require_container(place: str, asked: Asked) -> list[Requirement]:
    """Return what a policy demands of a container."""
    return [*require_limits(place, asked.limits), *_require_shm(place, asked)]


def judge_container(
    place: str, asked: Asked, limits: Mapping[str, Rlimit], shm_size: int | None, how: str
) -> list[Finding]:
    """Return the findings of a container that was seen.

    :param shm_size: In bytes; ``None`` where it has no /dev/shm of its own.
    """
    reason = "" if shm_size is not None else "it has no /dev/shm of its own"
    seen = Observation(shm_size, how, reason)
    findings = judge_limits(place, asked.limits, limits, how)
    return [*findings, *(judge(wanted, seen) for wanted in _require_shm(place, asked))]


def judge_container_unknown(place: str, asked: Asked, reason: str) -> list[Finding]:
    """Return the findings of a container that could not be seen."""
    findings = judge_limits(place, asked.limits, None, "", reason)
    unseen = Observation(None, "", reason)
    return [*findings, *(judge(wanted, unseen) for wanted in _require_shm(place, asked))]


def _require_shm(place: str, asked: Asked) -> list[Requirement]:
    if asked.shm_size is None:
        return []
    return [Requirement(place, SHM, "value", asked.shm_size, unit="bytes")]
