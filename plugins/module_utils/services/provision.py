# SPDX-License-Identifier: BSD-2-Clause
"""What systemd's services need on this host: drop-ins, a reload, and restarts by name."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from ..core.cgroup import find_home
from ..core.finding import judge_limits
from ..core.plan import Section, SectionPlan
from ..core.report import format_failures
from ..core.values import NamedTuple, Rlimit
from ..host.booted import is_booted
from ..host.look import (
    Look,
    Process,
    find_processes,
    find_user_managers,
    read_limits,
    read_start_time,
)
from ..host.manager_read import read_loaded_at, show_unit
from ..host.users import find_connecting_user
from ..systemd.limits import MANAGER, read_unit_limits
from ..systemd.model import UnitFacts, find_asked, predict_unit
from ..systemd.read import gather_unit, read_user_sources
from ..systemd.restarts import find_refusals, order_restarts
from ..systemd.sources_read import find_change
from ..systemd.unit_read import read_unit_files
from ..systemd.want import is_enough
from .logind_conf import LOGIND
from .plan import USER_CONF, ServicesState, apply_texts, find_target, is_ours, plan_services
from .policy import ServicesPolicy, UnitRule, find_rule
from .read import find_own_unit, find_owned, pick_oldest, read_editable, read_most_tasks, read_owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit
    from ..systemd.unit_file import Source

    Limits = Mapping[str, Limit]

_NOT_BOOTED = "systemd does not run here, so services get this from the first boot on"


class ServicesOptions(NamedTuple):
    """How the section is made true; ``restart`` are the units that may be restarted."""

    restart: Sequence[str] = ()
    override: bool = False
    absent: bool = False


class Running(NamedTuple):
    """A service that a unit of the policy means, and its first process."""

    unit: str
    owner: str
    rule: UnitRule
    process: Process


def prepare_services(
    services: ServicesPolicy, nr_open: int | None, options: ServicesOptions
) -> Section:
    """Return what the section of services needs here.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    absent = options.absent
    try:
        state = _read_state(services)
    except ValueError as exc:
        return Section(SectionPlan(problems=(str(exc),)))
    plan = plan_services(services, state, nr_open, options.override, absent)
    if not is_booted():
        return Section(plan._replace(notes=(*plan.notes, _NOT_BOOTED)))
    refused = find_refusals(options.restart, find_own_unit(), _find_connecting())
    plan = plan._replace(problems=(*plan.problems, *refused))
    processes = list(find_processes())
    texts = {edit.path: _decode(edit.after) for edit in plan.edits}
    old = [one for one in _find_running(services, processes) if _is_old(one, texts, absent)]
    named = order_restarts(one.unit for one in old if one.unit in options.restart)
    left = [one.unit for one in old if one.unit not in named]
    left += [] if absent else find_old_managers(services, processes)
    return Section(
        plan,
        restarted=tuple(named),
        restart_required=() if absent else tuple(left),
        settle=_find_settle(texts, processes, named),
        find_old=tuple if absent else partial(find_old_services, services),
        in_effect=() if left else ("services",),
    )


def _read_state(policy: ServicesPolicy) -> ServicesState:
    owners = [MANAGER, USER_CONF, LOGIND, *policy.units]
    files = {owner: read_owner(owner) for owner in owners}
    return ServicesState(read_editable(), files, read_most_tasks())


def _find_connecting() -> int:
    name = find_connecting_user()
    try:
        return pwd.getpwnam(name).pw_uid if name else 0
    except KeyError:
        return 0


def _decode(content: bytes | None) -> str | None:
    return None if content is None else content.decode("latin-1")


def _find_running(policy: ServicesPolicy, processes: Sequence[Process]) -> Iterator[Running]:
    for owner, units in find_owned(policy.units, processes).items():
        for unit, members in units.items() if owner.endswith(".service") else ():
            rule = find_rule(policy.units, unit, owner)
            yield Running(unit, owner, rule, pick_oldest(members))


def _is_old(one: Running, texts: Mapping[str, str | None], absent: bool) -> bool:
    """Tell whether a restart would give a service what it lacks, or take back what it got.

    :param texts: What will be written.
    """
    edited = find_target(one.owner) in texts or find_target(MANAGER) in texts
    if absent:
        return find_target(one.owner) in texts
    try:
        limits = read_limits(one.process.pid)
        asked = one.rule.limits.items()
        short = [item for item, limit in asked if not is_enough(limit, limits[item])]
        if not short:
            return False
        started = read_start_time(one.process)
        facts = gather_unit(one.unit, Look())
    except (OSError, ValueError):
        return False  # It ended meanwhile, or nobody can tell what a restart would give.
    facts = facts._replace(files=apply_texts(facts.files, one.owner, texts))
    if not any(_is_better(item, one.rule, limits, facts) for item in short):
        return False
    shown = show_unit(one.unit)
    unread = shown is not None and any(shown.limits[x] != find_asked(x, facts) for x in short)
    return edited or unread or bool(find_change(facts.files, one.unit, started)[0])


def _is_better(item: str, rule: UnitRule, limits: Mapping[str, Rlimit], facts: UnitFacts) -> bool:
    """Tell whether the next start gives enough of a limit."""
    # fs.nr_open may rise in this very run; that nofile stays below it was looked at.
    given = predict_unit(facts._replace(manager=facts.manager._replace(nr_open=2**31)))
    return (
        given is not None
        and given[item] != limits[item]
        and is_enough(rule.limits[item], given[item])
    )


def _find_settle(
    texts: Mapping[str, str | None], processes: Sequence[Process], restarts: Sequence[str]
) -> Callable[[], str] | None:
    """Return what lets systemd read what was written and restarts what may be, if anything."""
    folders = {path.rpartition("/")[0] for path in texts}
    user, logind = (find_target(name).rpartition("/")[0] for name in (USER_CONF, LOGIND))
    users = sorted(find_user_managers(processes)) if user in folders else []
    system = bool(folders - {user, logind}) or _is_unread()
    if not (users or logind in folders or system or restarts):
        return None
    from .settle import Settling

    return Settling(system, users, logind in folders, restarts)


def _is_unread() -> bool:
    """Tell whether a run ended after it wrote a file and before the manager had read it."""
    loaded_at = read_loaded_at()
    ours = (path for path, text in read_editable().items() if is_ours(path, text))
    return loaded_at > 0 and any(os.stat(path).st_ctime > loaded_at for path in ours)


_CANARY = "mlhost-canary-"


def find_old_managers(policy: ServicesPolicy, processes: Sequence[Process]) -> list[str]:
    """Return the managers of users that cannot give what the policy asks, as they are."""
    wanted = {
        item: limit.hard
        for item, limit in policy.user_default.limits.items()
        if limit.hard is not None
    }
    found = []
    for uid, process in find_user_managers(processes).items() if wanted else ():
        try:
            own = read_limits(process.pid)
        except (OSError, ValueError):
            continue  # It ended meanwhile.
        if any(own[item].hard < hard for item, hard in wanted.items()):
            found.append(f"user@{uid}.service")
    return found


def find_old_services(policy: ServicesPolicy) -> Iterator[str]:
    """Yield each running service that has less than the policy asks for, by name and pid."""
    processes = list(find_processes())
    named = set()
    for owner, units in find_owned(policy.units, processes).items():
        for unit, members in units.items() if owner.endswith(".service") else ():
            named.add(unit)
            limits = find_rule(policy.units, unit, owner).limits
            yield from _describe(unit, pick_oldest(members), limits)
    for unit, process in find_services(processes, None).items():
        if unit not in named and policy.default.limits:
            yield from _describe(unit, process, policy.default.limits, unit)
    for uid in find_user_managers(processes) if policy.user_default.limits else ():
        for unit, process in find_services(processes, uid).items():
            who = f"{unit} of uid {uid}"
            yield from _describe(who, process, policy.user_default.limits, unit, uid)


def _describe(
    place: str, process: Process, wanted: Limits, unit: str = "", uid: int | None = None
) -> list[str]:
    """Return what a process has less than is asked; of a default, where its unit is silent.

    :param unit: The unit, of whose manager this is the default.
    """
    try:
        limits = read_limits(process.pid)
    except (OSError, ValueError):
        return []  # It ended meanwhile.
    if unit and any(not is_enough(limit, limits[item]) for item, limit in wanted.items()):
        wanted = leave_stated(wanted, unit, uid)
    where = f"{place} (pid {process.pid})"
    return format_failures(judge_limits(where, wanted, limits, f"/proc/{process.pid}/limits"))


def find_services(processes: Sequence[Process], uid: int | None) -> dict[str, Process]:
    """Return the services of the system, or of a user's manager, each with its first process."""
    found: dict[str, list[Process]] = {}
    for process in processes:
        home = find_home(process.cgroup)
        unit = home.unit if uid is None else home.user_unit
        is_meant = unit.endswith(".service") if uid is not None else bool(unit)
        if home.uid == uid and is_meant and not unit.startswith(_CANARY):
            found.setdefault(unit, []).append(process)
    return {unit: pick_oldest(members) for unit, members in found.items()}


def leave_stated(wanted: Limits, unit: str, uid: int | None) -> Limits:
    """Return what a default says of a unit: of what the unit itself states it says nothing."""
    try:
        main, dropins = _read_files(unit, uid)
    except (OSError, ValueError, RecursionError):
        return {}
    if main is None:
        return {}
    stated = {one.item for one in read_unit_limits("service", main, dropins).statements}
    return {item: limit for item, limit in wanted.items() if item not in stated}


def _read_files(unit: str, uid: int | None) -> tuple[Source | None, Sequence[Source]]:
    """Return the file of a unit and its drop-ins, those of a user's as that user reads them."""
    if uid is None:
        return read_unit_files(unit)
    files = read_user_sources(unit, uid)
    return files.main, files.dropins
