# SPDX-License-Identifier: BSD-2-Clause
"""What CRI-O's containers get on this host: a drop-in of crio.conf, and a restart where allowed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial

from ..containers.cgroup import CRIO
from ..containers.policy import ContainerPolicy
from ..core.plan import Section, SectionPlan
from ..core.values import Rlimit
from ..host.look import Process, find_processes, started_before
from ..podman.plan import PodmanState, plan_podman
from .causes import UNIT
from .crio_conf import OWN
from .plan import ENGINE, find_beating, find_refusals
from .read import PROGRAMS, find_crio, read_ceilings, read_conf_files, read_options


def prepare_crio(
    asked: ContainerPolicy, nr_open: int | None, absent: bool, override: bool, may_restart: bool
) -> Section:
    """Return what CRI-O's section needs here.

    :param nr_open: The lowest fs.nr_open that will be in force.
    :param may_restart: Whether crio is restarted where it must be.
    """
    process = find_crio(find_processes())
    try:
        plan = _plan(asked, nr_open, absent, override, process)
    except (OSError, ValueError) as error:
        return Section(SectionPlan(problems=(str(error),)))
    old = bool(plan.edits) or (process is not None and started_before(process, OWN))
    needed = (UNIT,) if process is not None and old else ()
    return Section(
        plan,
        restarted=needed if may_restart else (),
        restart_required=() if may_restart else needed,
        settle=_restart if needed and may_restart else None,
        find_old=tuple if absent else partial(_find_old, asked),
        in_effect=("crio",) if process and (may_restart or not needed) else (),
    )


def _plan(
    asked: ContainerPolicy,
    nr_open: int | None,
    absent: bool,
    override: bool,
    process: Process | None,
) -> SectionPlan:
    options: Mapping[str, str] = {}
    ceilings: Mapping[str, Rlimit] = {}
    if process and not absent:
        options, ceilings = read_options(process.pid), read_ceilings(process)
    refused = tuple(find_refusals(asked, ceilings, options))
    if refused:
        return SectionPlan(problems=refused)
    installed = process is not None or any(map(os.path.exists, PROGRAMS))
    state = PodmanState(read_conf_files(), installed)
    plan = plan_podman(asked, state, nr_open, override, absent, ENGINE)
    return plan._replace(notes=(*plan.notes, *find_beating(asked, options)))


def _restart() -> str:
    from ..write.systemctl import restart_unit

    return restart_unit(UNIT)


def _find_old(policy: ContainerPolicy) -> Iterator[str]:
    """Yield running containers that have less than the policy asks for."""
    from ..containers.limits_read import tell_old_running
    from ..containers.read import find_running

    return tell_old_running(find_running(find_processes(), (CRIO,)), policy)
