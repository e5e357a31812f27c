# SPDX-License-Identifier: BSD-2-Clause
"""Say why services fall short of a policy: new ones, those that do not run, and their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..containers.tasks import Bounds, Given, find_uid
from ..core.cause import Cause, Outlook
from ..core.finding import FAIL, UNKNOWN, Finding, Observation, judge
from ..host.users import name_user
from ..processes.causes import Verdict
from ..processes.diagnose import own, tell
from ..processes.new_services import explain_new
from ..processes.starters_read import doubt_start, list_starters
from ..processes.units_diagnose import find_given_of_user, judge_user_default, name_caller
from ..systemd.limits import MANAGER
from ..systemd.read import (
    NEW_SERVICE,
    USER_CONF,
    USER_FOLDER,
    Seen,
    World,
    foresee_boot,
    gather_default,
    read_user_sources,
)
from ..systemd.sources_read import read_sources
from ..systemd.unit_file import list_slices, merge_units
from .read import read_most_tasks
from .tasks_causes import TasksLevel, find_tasks_causes, outlive, predict_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit
    from ..core.values import Rlimit
    from ..processes.causes import Commands
    from ..sessions.shell_limits import ShellLine
    from ..systemd.model import UnitFacts
    from ..systemd.tasks import Level

RELOAD: Commands = (("systemctl", "daemon-reload"),)


def explain_new_service(
    findings: Sequence[Finding],
    wanted: Mapping[str, Limit],
    limits: Mapping[str, Rlimit] | None,
    world: World,
) -> list[Finding]:
    """Return the findings of a new service of the system, with what they come from.

    :param limits: What one got that was just started, if that was seen.
    """
    try:
        facts = gather_default(world.look)
        booted = foresee_boot(facts, world.look)
    except (OSError, ValueError):
        return list(findings)
    return _tell_next(findings, wanted, limits, (facts, booted))


def explain_idle_unit(
    findings: Sequence[Finding], unit: str, wanted: Mapping[str, Limit], world: World
) -> list[Finding]:
    """Return the findings of a unit that does not run, with what its next start will give."""
    known = world.find_unit(unit)
    lines = list_starters(known[0]) if known else ()
    return _tell_next(findings, wanted, None, known, lines) if known else list(findings)


def _tell_next(
    findings: Sequence[Finding],
    wanted: Mapping[str, Limit],
    limits: Mapping[str, Rlimit] | None,
    known: tuple[UnitFacts, UnitFacts | None],
    lines: Sequence[ShellLine] = (),
) -> list[Finding]:
    told = {
        item: explain_new(item, limit, limits[item] if limits else None, *known, RELOAD)
        for item, limit in wanted.items()
    }
    told = {
        item: doubt_start(item, wanted[item], one, lines, 0.0, known[0])
        for item, one in told.items()
    }
    return [tell(finding, told, unseen=True) for finding in findings]


def explain_new_user_service(seen: Seen, uid: int, world: World) -> list[Finding]:
    """Return the findings of a new service of a user's manager, with what they come from."""
    try:
        told = judge_user_default(seen, uid, world)
    except (KeyError, OSError, ValueError):
        told = {}
    given = find_given_of_user(uid, world)
    return [
        own(tell(finding, told), seen.owner, Verdict(given=given.get(finding.requirement.item)))
        for finding in seen.findings
    ]


def own_tasks(finding: Finding, levels: Sequence[Level], uid: int) -> Finding:
    """Return a finding on the tasks of a user's service with whose doing it is.

    A user may write the bounds below the own manager (systemd.resource-control(5), Delegate=), and
    root has those above.
    """
    names = [level.unit for level in levels]
    manager = f"user@{uid}.service"
    above = levels[names.index(manager) :] if manager in names else ()
    least = finding.requirement.minimum or 0
    if finding.status != FAIL or not uid or any(level.most < least for level in above):
        return finding
    return finding._replace(owner=name_user(uid))


def explain_tasks(finding: Finding, levels: Sequence[Level], uid: int | None = None) -> Finding:
    """Return the finding on the tasks of a unit with what it comes from.

    :param levels: The cgroups that bound it, the unit's own first.
    :param uid: Whose manager has the first of them, up to user@UID.service.
    """
    try:
        known = gather_levels(levels, uid)
    except (OSError, ValueError):
        return finding
    return _tell_tasks(finding, known)


def explain_container_tasks(
    finding: Finding, bounds: Bounds, given: Given, own: Sequence[Cause]
) -> Finding:
    """Return the finding on the tasks of a container: its own bound first, then the units above.

    :param own: Why its own bound is too little.
    """
    if finding.status == UNKNOWN:
        return finding
    levels = bounds.list_units(given.is_its_own)
    told = explain_tasks(finding, levels, find_uid(levels)) if levels else finding
    status = judge(finding.requirement, Observation(given.most, "")).status
    soon, boot = (_find_worse(status, one) for one in told.outlook[1:])
    return told._replace(causes=(*own, *told.causes), outlook=Outlook("", soon, boot))


def _find_worse(one: str, other: str) -> str:
    """Return what comes of two bounds; an empty one has no say."""
    return next((status for status in (FAIL, UNKNOWN) if status in (one, other)), one)


def explain_idle_tasks(finding: Finding, unit: str) -> Finding:
    """Return the finding on the tasks of a unit that does not run with what is to come."""
    try:
        files = read_sources(unit)
        if files.main is None or not files.main.text:
            return finding
        slices = list_slices(unit, merge_units(files.main, files.dropins))
        known = [TasksLevel(unit, files)]
        known += [TasksLevel(one, read_sources(one)) for one in slices]
    except (OSError, ValueError):
        return finding
    return _tell_tasks(finding, known)


def gather_levels(levels: Sequence[Level], uid: int | None) -> list[TasksLevel]:
    """Return the units that bound tasks, with their files.

    :raises OSError, ValueError: If the files cannot be read or understood.
    """
    known, inside = [], uid is not None
    for level in levels:
        inside = inside and level.unit != f"user@{uid}.service"
        one = TasksLevel(level.unit, read_sources(level.unit), level.most, level.path)
        if inside and uid is not None:
            files = read_user_sources(level.unit, uid)
            reload: Commands = (name_caller(uid)("daemon-reload"),)
            one = one._replace(files=files, folder=USER_FOLDER, reload=reload)
        if level.unit.startswith(NEW_SERVICE.partition("-0")[0]):
            one = one._replace(defaults_of=USER_CONF if inside else MANAGER)
        known.append(one)
    return known


def _tell_tasks(finding: Finding, known: Sequence[TasksLevel]) -> Finding:
    """Return a finding with what the files will give, and why that is too little."""
    highest, wanted = read_most_tasks(), finding.requirement
    least = wanted.minimum or 0
    later = outlive(known)
    soon, boot = (
        judge(wanted, Observation(predict_all(levels, highest), "")).status
        for levels in (known, later)
    )
    causes = find_tasks_causes(least, known, highest)
    if not causes and boot == FAIL:
        causes = find_tasks_causes(least, later, highest)
    return finding._replace(causes=tuple(causes), outlook=Outlook("", soon, boot))
