# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain of a container that CRI-O starts."""

from __future__ import annotations

from collections.abc import Iterator

from ..containers.policy import SHM, TASKS, require_item
from ..core.cause import Link, cite
from ..core.quote import one_line
from ..core.values import format_pair, format_quantity
from ..host.look import Look, Process, format_time, read_limits, read_start_time
from ..podman.causes import PodmanFacts
from ..podman.containers_conf import LIMITS_KEY, TASKS_KEY, find_tasks
from ..podman.explain import trace_files, trace_kernel
from .causes import CrioFacts
from .check import ABSENT, find_limits, gather_crio
from .crio_conf import DEFAULT_TASKS, OPTIONS
from .read import TOLD, ask_crio, find_crio


def trace_crio(item: str, look: Look) -> list[Link]:
    """Return the chain of one limit of a new container of CRI-O.

    :raises OSError, ValueError: If there is no such item, or no crio that says what it gives.
    """
    require_item(item)
    process = find_crio(look.processes)
    if process is None or item == SHM:
        raise ValueError("a pod states its /dev/shm itself" if process else ABSENT)
    facts, key = gather_crio(process, look), TASKS_KEY if item == TASKS else LIMITS_KEY
    files = PodmanFacts(facts.stated, facts.nr_open, facts.broken)
    links = [*trace_kernel(item, look), *_trace_process(item, process)]
    links += _trace_tasks(facts, look) if item == TASKS else trace_files(item, files, look)
    option = facts.options.get(OPTIONS[key])
    links += [Link("option", "", f"{one_line(option)}: no file counts")] if option else []
    told = find_limits(ask_crio(), read_limits(process.pid))
    if item != TASKS:
        return [*links, Link("container", format_pair(item, told.limits[item]), TOLD)]
    value = format_quantity(told.levels[0].most) if told.levels else "systemd's default"
    return [*links, Link("container", value, TOLD)]


def _trace_process(item: str, process: Process) -> Iterator[Link]:
    if item != TASKS:
        source, since = f"/proc/{process.pid}/limits", format_time(read_start_time(process))
        yield Link("crio", format_pair(item, read_limits(process.pid)[item]), source, since)


def _trace_tasks(facts: CrioFacts, look: Look) -> Iterator[Link]:
    winner = facts.defaults.tasks
    for at in filter(None, (one.tasks for one in facts.stated)):
        most, beaten = find_tasks(at), "" if at == winner else " (beaten)"
        value = "systemd's default" if most is None else format_quantity(most)
        yield Link("stated", value, cite(at) + beaten, look.find_change(at.path))
    if winner is None:
        yield Link("default", format_quantity(DEFAULT_TASKS), f"no file states {TASKS_KEY}")
