# SPDX-License-Identifier: BSD-2-Clause
"""What jobs of Slurm need on this host: a drop-in of slurmd, and a line in slurm.conf."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..core.finding import judge_limits
from ..core.plan import Section, SectionPlan
from ..core.report import format_failures
from ..core.values import NamedTuple
from ..host.look import Look, Process, find_processes, read_limits, started_before
from ..systemd.model import UnitFacts
from ..systemd.read import gather_unit
from .plan import DROP_IN, UNIT, SlurmOptions, SlurmState, plan_slurm
from .policy import SlurmPolicy
from .read import find_slurmd, find_steps, read_slurm_files


class Slurm(NamedTuple):
    """The Slurm of this host: its files, and the daemon if it runs."""

    state: SlurmState
    slurmd: Process | None


def prepare_slurm(
    policy: SlurmPolicy, nr_open: int | None, options: SlurmOptions, may_restart: bool
) -> Section:
    """Return what the jobs' section needs here.

    :param nr_open: The lowest fs.nr_open that will be in force.
    :param may_restart: Whether slurmd is restarted where it must be.
    """
    slurm = _read_slurm()
    plan = plan_slurm(policy, slurm.state, nr_open, options)
    if not plan.problems:
        plan = plan._replace(problems=tuple(_find_refusal(slurm, plan)))
    conf = any(edit.path == slurm.state.conf_path for edit in plan.edits)
    unit = len(plan.edits) > conf
    needed = (UNIT,) if _needs_restart(slurm, unit) else ()
    restart = bool(needed) and may_restart
    settle = partial(_settle, unit, restart, conf) if unit or restart or conf else None
    return Section(
        plan,
        restarted=needed if restart else (),
        restart_required=() if restart else needed,
        settle=settle,
        find_old=tuple if options.absent else partial(_find_old, policy),
        in_effect=("slurm",) if slurm.slurmd and (restart or not needed) else (),
    )


def _settle(unit: bool, restart: bool, conf: bool) -> str:
    from .settle import settle_slurm

    return settle_slurm(UNIT, unit, restart, conf)


def _read_slurm() -> Slurm:
    slurmd = find_slurmd()
    files = read_slurm_files(slurmd)
    state = SlurmState(_gather_unit(), files.texts, files.path, files.served)
    return Slurm(state, slurmd)


def _gather_unit() -> UnitFacts | None:
    try:
        return gather_unit(UNIT, Look())
    except ValueError:
        return None  # It has no file, or is masked.


def _find_refusal(slurm: Slurm, plan: SectionPlan) -> Iterator[str]:
    """Yield what Slurm itself says of a changed slurm.conf."""
    from .settle import find_conf_refusal

    for edit in plan.edits:
        if edit.path == slurm.state.conf_path and edit.before and edit.after:
            refusal = find_conf_refusal(edit.path, edit.before, edit.after)
            if refusal:
                yield refusal


def _needs_restart(slurm: Slurm, edited: bool) -> bool:
    """Tell whether slurmd runs with older limits than its files state."""
    if slurm.slurmd is None:
        return False
    return edited or started_before(slurm.slurmd, DROP_IN)


def _find_old(policy: SlurmPolicy) -> Iterator[str]:
    """Yield the steps of jobs that run with a lower hard limit than the policy asks for."""
    for step, pid in find_steps(find_processes()):
        try:
            limits = read_limits(pid)
        except (OSError, ValueError):
            continue  # It ended meanwhile.
        place = f"step {step} of a job (slurmstepd, pid {pid})"
        how = f"/proc/{pid}/limits"
        yield from format_failures(judge_limits(place, policy.of_steps, limits, how))
