# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of running processes; they are only checked."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.reader import Key, Limit, join_names, read_entries, read_stated
from ..core.values import RLIMITS, NamedTuple

KEYS = {
    "user": Key("one of three", "processes of this user"),
    "name": Key("one of three", "processes with this name in /proc/PID/comm"),
    "unit": Key("one of three", "processes in the cgroup of this systemd unit"),
    "limits": Key("limits", "what each of them has", RLIMITS),
}
_SELECTORS = tuple(name for name in KEYS if name != "limits")


class ProcessRule(NamedTuple):
    """Limits of running processes, selected ``by`` user, name or unit. Only checked."""

    by: str
    value: str
    limits: Mapping[str, Limit]


def read_processes(raw: object, problems: list[str]) -> tuple[ProcessRule, ...]:
    """Read the section ``processes``; every violation is added to *problems*."""
    rules = []
    items = KEYS["limits"].accepted
    for path, entry in read_entries("processes", raw, KEYS, problems):
        chosen = [name for name in _SELECTORS if name in entry]
        limits = read_stated(f"{path}.limits", entry.get("limits"), items, problems)
        if len(chosen) != 1 or not isinstance(entry[chosen[0]], str):
            problems.append(f"{path}: exactly one of {join_names(_SELECTORS)} is needed, as a text")
        else:
            rules.append(ProcessRule(chosen[0], str(entry[chosen[0]]), limits))
    return tuple(rules)
