# SPDX-License-Identifier: BSD-2-Clause
"""Find the services that go on with less than a policy asks for until they are restarted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.cgroup import find_home
from ..core.finding import judge_limits
from ..core.report import format_failures
from ..host.process import Process, find_processes, find_user_managers, read_limits
from ..systemd.limits import read_unit_limits
from ..systemd.read import read_user_sources
from ..systemd.unit_read import read_unit_files
from ..systemd.want import is_enough
from .policy import ServicesPolicy, find_rule
from .read import find_owned, pick_oldest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit
    from ..systemd.unit_file import Source

    Limits = Mapping[str, Limit]

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
