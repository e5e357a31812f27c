# SPDX-License-Identifier: BSD-2-Clause
"""Know the limits with which services that logins need would not go on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.reader import Limit
from ..core.values import ITEMS, UNLIMITED, format_quantity
from ..sessions.lockouts import FLOORS
from .policy import TASKS, ServicesPolicy, UnitRule

LEAST_TASKS = 64
_BEHIND_LOGINS = re.compile(
    r"(sshd?|sshd?-session|user|getty|serial-getty|container-getty|console-getty)(@.*)?\.service"
    r"|(systemd-(logind|user-sessions|journald|networkd|udevd)|dbus(-broker)?|NetworkManager)"
    r"\.service|(-|user|user-.*|system|system-.*)\.slice"
)
"""Units that must go on so that somebody can log in."""


def find_service_lockouts(policy: ServicesPolicy) -> Iterator[str]:
    """Yield the limits with which nobody could log in once services have them."""
    defaults = {"default": policy.default, "user_default": policy.user_default}
    for name, rule in defaults.items():
        yield from _find_small(f"services.{name}", rule)
        if rule.limits.get("cpu", Limit()).hard not in (None, UNLIMITED):
            yield f"services.{name}.cpu: ends every service in time, sshd too; name the units"
    for name, rule in policy.units.items():
        if _BEHIND_LOGINS.fullmatch(name):
            yield from _find_small(f"services.units.{name}", rule)


def _find_small(path: str, rule: UnitRule) -> Iterator[str]:
    """Yield the limits with which services that a login needs would not run."""
    for name, limit in rule.limits.items():
        floor, value = FLOORS.get(name), limit.soft
        if floor and value is not None and value < floor.least:
            unit = ITEMS[name].unit
            least = format_quantity(floor.least, unit)
            yield (
                f"{path}.{name}: {format_quantity(value, unit)} is too little for what logins need:"
                f" {floor.breaks}; {least} or more is accepted"
            )
    if rule.tasks is not None and 0 < rule.tasks < LEAST_TASKS:
        yield (
            f"{path}.{TASKS}: {rule.tasks} is too little for what logins need: a login through ssh"
            f" takes 5 tasks, and each thread is one; {LEAST_TASKS} or more is accepted"
        )
