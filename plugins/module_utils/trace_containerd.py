# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain of a container that containerd starts."""

from __future__ import annotations

from .check_containerd import measure_new
from .policy.cause import Link, cite
from .policy.containerd_policy import ContainerdPolicy
from .policy.plan_containerd import UNIT
from .policy.process_causes import format_pair
from .probe.containerd import read_base_spec
from .trace_processes import trace_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .probe.evidence import Evidence


def trace_containerd(item: str, evidence: Evidence) -> list[Link]:
    """Return the chain of one limit of a new container of containerd, as a pod's.

    :raises OSError, ValueError: If a file cannot be read.
    """
    links = trace_unit(UNIT, item, evidence)
    base = read_base_spec()
    if base and item in base.limits:
        links.append(Link("base spec", format_pair(item, base.limits[item]), cite(base.at)))
    seen = measure_new(ContainerdPolicy({}), "always", evidence)
    if item in seen.limits:
        return [*links, Link("container", format_pair(item, seen.limits[item]), "a canary's")]
    why = str(seen.findings[0].observation.value) if seen.findings else "it could not be measured"
    return [*links, Link("container", "unknown", why)]
