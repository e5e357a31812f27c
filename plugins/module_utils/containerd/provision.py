# SPDX-License-Identifier: BSD-2-Clause
"""What containers inherit from containerd: a drop-in of its unit, and a restart where allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ..containers.policy import ContainerPolicy
from ..core.plan import Section, SectionPlan
from ..host.booted import is_booted
from ..host.look import find_processes, started_before
from ..systemd.sources_read import read_sources
from .measure import find_containerd, find_containers, read_base_spec
from .plan import OURS, UNIT, plan_containerd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base_spec import BaseSpec


def prepare_containerd(
    policy: ContainerPolicy, nr_open: int | None, absent: bool, override: bool, may_restart: bool
) -> Section:
    """Return what containerd's section needs here.

    :param nr_open: The lowest fs.nr_open that will be in force.
    :param may_restart: Whether containerd is restarted where it must be.
    """
    try:
        files = read_sources(UNIT)
        base = _read_base(must=bool(policy.stated) and not absent)
    except (OSError, ValueError) as error:
        return Section(SectionPlan(problems=(str(error),)))
    plan = plan_containerd(policy, files, nr_open, override, absent, base)
    process = find_containerd(find_processes())
    old = bool(plan.edits) or (process is not None and started_before(process, OURS))
    needed = (UNIT,) if process is not None and old else ()
    return Section(
        plan,
        restarted=needed if may_restart else (),
        restart_required=() if may_restart else needed,
        settle=_find_settle(bool(plan.edits), bool(needed) and may_restart),
        find_old=tuple if absent else partial(_find_old, policy),
        in_effect=("containerd",) if process and (may_restart or not needed) else (),
    )


def _read_base(must: bool) -> BaseSpec | None:
    """Return the base specification of pods, or nothing where none needs to be read.

    :raises OSError, ValueError: If one must be read and cannot be.
    """
    try:
        return read_base_spec()
    except (OSError, ValueError):
        if must:
            raise
        return None


def _find_settle(edited: bool, restart: bool) -> Callable[[], str] | None:
    from ..write.systemctl import reload_units, restart_unit

    if restart:
        return partial(restart_unit, UNIT)
    return reload_units if edited and is_booted() else None


def _find_old(policy: ContainerPolicy) -> Iterator[str]:
    """Yield running containers that have less than the policy asks for."""
    from ..containers.limits_read import tell_old_running

    return tell_old_running(find_containers(find_processes()), policy)
