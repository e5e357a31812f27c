# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of systemd's services and user managers, read and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.quote import quote
from ..core.reader import (
    Key,
    Limit,
    UnknownKey,
    name_kind,
    read_limits,
    read_mapping,
    read_quantity,
    refuse_unknown,
)
from ..core.values import RLIMITS, UNLIMITED, NamedTuple
from ..systemd.unit_file import list_wider_names

TASKS = "tasks"
"""The one item beside the limits of processes: how many tasks the cgroup of a unit may hold."""

_TASKS = {"tasks": Key("tasks", "how many processes and threads its cgroup may hold")}
KEYS = {
    "default": Key("rule", "services that state nothing", RLIMITS, below=_TASKS),
    "user_default": Key(
        "rule", "services of users' managers that state nothing", RLIMITS, below=_TASKS
    ),
    "units": Key(
        "by name",
        "units by their names",
        below={
            "UNIT": Key(
                "rule",
                "a service, a template, or a slice, which has tasks alone",
                RLIMITS,
                below=_TASKS,
            )
        },
    ),
    "logind": Key(
        "mapping",
        "logind.conf",
        below={
            "remove_ipc": Key(
                "switch", "whether the shared memory of a user goes with the last login"
            )
        },
    ),
}
_ACCEPTED = (*KEYS["default"].accepted, *KEYS["default"].below)
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}\.(service|slice)")
_OTHERS = re.compile(r".*\.(socket|timer|path|target|scope|mount|automount|swap|device)", re.DOTALL)


class UnitRule(NamedTuple):
    """What a unit's processes get; ``tasks`` is the number that its cgroup may hold."""

    limits: Mapping[str, Limit] = {}
    tasks: int | None = None


class ServicesPolicy(NamedTuple):
    """What services get that state nothing, those of users' managers, and some by name.

    ``remove_ipc`` is whether logind removes a user's shared memory at the end of the last login.
    """

    default: UnitRule = UnitRule()
    user_default: UnitRule = UnitRule()
    units: Mapping[str, UnitRule] = {}
    remove_ipc: bool | None = None


def find_rule(units: Mapping[str, UnitRule], name: str, owner: str) -> UnitRule:
    """Return what a policy says of one unit: of its template and of prefixes, itself counts most.

    One drop-in holds it all, because it hides those of the same name in wider folders.

    :param owner: By which name the policy means it: perhaps an alias.
    """
    names = list_wider_names(name)
    names = names if owner in names else list_wider_names(owner)
    rules = [units[wider] for wider in reversed(names) if wider in units]
    limits = {item: limit for rule in rules for item, limit in rule.limits.items()}
    tasks = [rule.tasks for rule in rules if rule.tasks is not None]
    return UnitRule(limits, tasks[-1] if tasks else None)


def read_services(raw: object, problems: list[str]) -> ServicesPolicy | None:
    """Read the section ``services``; every violation is added to *problems*."""
    section = read_mapping("services", raw, KEYS, problems)
    default, user_default = (
        _read_rule(f"services.{name}", section[name], problems) if name in section else UnitRule()
        for name in ("default", "user_default")
    )
    policy = ServicesPolicy(
        default,
        user_default,
        _read_units(section.get("units", {}), problems),
        _read_logind(section.get("logind", {}), problems),
    )
    return policy if policy != ServicesPolicy() else None


def _read_units(raw: object, problems: list[str]) -> dict[str, UnitRule]:
    if not isinstance(raw, dict):
        problems.append(f"services.units: {name_kind(raw)} was given; a mapping is accepted")
        return {}
    units = {}
    for name, value in raw.items():
        path = f"services.units.{name}"
        reason = find_name_fault(name)
        if reason:
            problems.append(UnknownKey(f"{path}: {reason}"))
            continue
        units[name] = rule = _read_rule(path, value, problems)
        if name.endswith(".slice") and rule.limits:
            problems.append(
                f"{path}: a slice has no {', '.join(rule.limits)}; of it only tasks is accepted"
            )
    return units


def find_name_fault(name: object) -> str:
    """Return why a name is not that of a unit whose limits can be stated; or nothing."""
    if isinstance(name, str) and _OTHERS.fullmatch(name):
        return "starts no processes of its own; name the service that it starts"
    if not isinstance(name, str) or not _UNIT.fullmatch(name) or name[0] in ".@":
        return f"{quote(name)} is not a unit; accepted are NAME.service, NAME@.service, NAME.slice"
    return ""


def _read_rule(path: str, raw: object, problems: list[str]) -> UnitRule:
    """Read the limits of one unit, or of all; systemd states soft and hard together."""
    if raw == {}:
        problems.append(f"{path}: is empty, so nothing would be required")
    if not isinstance(raw, dict):
        problems.append(f"{path}: {name_kind(raw)} was given; a mapping is accepted")
        return UnitRule()
    refuse_unknown(path, raw, _ACCEPTED, problems)
    stated = {name: value for name, value in raw.items() if name in RLIMITS}
    limits = read_limits(path, stated, RLIMITS, problems)
    for name, limit in limits.items():
        if (limit.soft is None) != (limit.hard is None):
            problems.append(f"{path}.{name}: systemd needs soft and hard, or one value")
    if UNLIMITED in (limits.get("nofile", Limit()).soft, limits.get("nofile", Limit()).hard):
        problems.append(
            f"{path}.nofile: 'unlimited' is above fs.nr_open, so the kernel refuses it and systemd"
            " gives what it has itself; a number is accepted"
        )
    return UnitRule(limits, _read_tasks(f"{path}.{TASKS}", raw, problems))


def _read_tasks(path: str, raw: Mapping[str, object], problems: list[str]) -> int | None:
    if TASKS not in raw:
        return None
    value = read_quantity(path, raw[TASKS], "", problems)
    if value == 0:
        problems.append(f"{path}: 0 means nothing to systemd; a number above 0 is accepted")
    return value


def _read_logind(raw: object, problems: list[str]) -> bool | None:
    section = read_mapping("services.logind", raw, KEYS["logind"].below, problems)
    value = section.get("remove_ipc")
    if value is not None and not isinstance(value, bool):
        problems.append(f"services.logind.remove_ipc: {quote(value)} was given; true or false")
        return None
    return value
