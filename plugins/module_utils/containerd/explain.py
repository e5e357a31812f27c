# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain of a container that containerd starts."""

from __future__ import annotations

from ..core.cause import Link, cite
from ..host.look import Look
from ..processes.causes import format_pair
from ..processes.explain import trace_unit
from .check import measure_new
from .measure import read_base_spec
from .plan import UNIT
from .policy import ContainerdPolicy


def trace_containerd(item: str, look: Look) -> list[Link]:
    """Return the chain of one limit of a new container of containerd, as a pod's.

    :raises OSError, ValueError: If a file cannot be read.
    """
    links = trace_unit(UNIT, item, look)
    base = read_base_spec()
    if base and item in base.limits:
        links.append(Link("base spec", format_pair(item, base.limits[item]), cite(base.at)))
    seen = measure_new(ContainerdPolicy({}), "always", look)
    if item in seen.limits:
        return [*links, Link("container", format_pair(item, seen.limits[item]), "a canary's")]
    why = str(seen.findings[0].observation.value) if seen.findings else "it could not be measured"
    return [*links, Link("container", "unknown", why)]
