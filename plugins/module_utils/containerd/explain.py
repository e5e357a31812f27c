# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain of a container that containerd starts."""

from __future__ import annotations

from collections.abc import Iterator

from ..containers.policy import TASKS, ContainerPolicy
from ..containers.tasks import split_levels
from ..core.cause import Link, cite
from ..core.values import format_pair, format_quantity
from ..host.look import Look
from ..processes.explain import trace_unit
from .check import measure_new
from .measure import NAME, read_base_spec
from .plan import UNIT


def trace_containerd(item: str, look: Look) -> list[Link]:
    """Return the chain of one limit of a new container of containerd, as a pod's.

    :raises OSError, ValueError: If a file cannot be read.
    """
    if item == TASKS:
        return list(_trace_tasks(look))
    links = trace_unit(UNIT, item, look)
    base = read_base_spec()
    if base and item in base.limits:
        links.append(Link("base spec", format_pair(item, base.limits[item]), cite(base.at)))
    seen = measure_new(ContainerPolicy({}), "always", look)
    if item in seen.limits:
        return [*links, Link("container", format_pair(item, seen.limits[item]), "a canary's")]
    why = str(seen.findings[0].observation.value) if seen.findings else "it could not be measured"
    return [*links, Link("container", "unknown", why)]


def _trace_tasks(look: Look) -> Iterator[Link]:
    """Yield what bounds the tasks of a new container: units above it, the base specification."""
    from ..services.explain import trace_levels

    seen = measure_new(ContainerPolicy({}), "always", look)
    bounds = split_levels(seen.levels, NAME)
    yield from trace_levels(bounds.list_units(True), None, look)
    if seen.base and seen.base.tasks is not None:
        yield Link("base spec", format_quantity(seen.base.tasks), cite(seen.base.at))
    yield bounds.link()
