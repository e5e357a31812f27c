# SPDX-License-Identifier: BSD-2-Clause
"""Predict the limits that systemd gives a unit: which line wins, and what is ignored, and why.

Sources: ``config_parse_rlimit()``, ``unit_load_fragment()``, ``unit_load_dropin()``,
``config_parse_many_files()`` and ``unit_patch_contexts()`` of systemd.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.values import Bound, NamedTuple, Rlimit
from .unit_file import Setting, Source, order_dropins, order_sources, scan_unit
from .values import LIMIT_KEYS, parse_limit_setting

MANAGER = "system.conf"
"""The name under which the manager's defaults are asked for, as if it were a unit."""

SECTIONS = {"service": "Service", "socket": "Socket", "mount": "Mount", "swap": "Swap"}
"""The kinds of unit that run processes, and the section that holds their limits."""

_DEFAULT = "Default"
_KEYS = {key.lower(): key for key in (*LIMIT_KEYS, *(_DEFAULT + key for key in LIMIT_KEYS))}


class Statement(NamedTuple):
    """One limit that systemd heeds."""

    item: str
    limit: Rlimit
    setting: Setting


class Ignored(NamedTuple):
    """A line that systemd does not heed, with the reason."""

    path: str
    line: int
    text: str
    reason: str


class Reading(NamedTuple):
    """What files state, in the order in which it applies, and whether they can be loaded."""

    statements: list[Statement]
    ignored: list[Ignored]
    refused: Ignored | None = None


def read_unit_limits(kind: str, main: Source, dropins: Sequence[Source]) -> Reading:
    """Read a unit file and its drop-ins.

    A line that is not valid ends a drop-in; in the unit file itself the unit is not loaded.

    :param kind: What the unit's name ends in, such as ``service``.
    :param dropins: The strongest first.
    """
    reading = Reading([], [])
    section = SECTIONS.get(kind, "")
    fault = _read(main, section, "", reading)
    if fault:
        return Reading([], reading.ignored, fault)
    for source in order_dropins(dropins):
        reading.ignored.extend(filter(None, [_read(source, section, "", reading)]))
    return reading


def read_manager_limits(main: Source | None, dropins: Sequence[Source]) -> Reading:
    """Read system.conf and its drop-ins; a line that is not valid ends all of it."""
    reading = Reading([], [])
    for source in order_sources(main, dropins):
        fault = _read(source, "Manager", _DEFAULT, reading)
        if fault:
            reading.ignored.append(fault)
            break
    return reading


def _read(source: Source, section: str, prefix: str, reading: Reading) -> Ignored | None:
    """Add what one file states; return the line at which systemd gives up."""
    settings, fault = scan_unit(source.text, source.path)
    for setting in settings:
        key = _KEYS.get(setting.key.lower())
        if key is None:
            continue
        wanted = prefix + key[key.startswith(_DEFAULT) * len(_DEFAULT) :]
        reason = _find_reason(setting, section, wanted)
        if reason:
            text = f"{setting.key}={setting.value}"
            reading.ignored.append(Ignored(setting.path, setting.line, text, reason))
            continue
        item = LIMIT_KEYS[wanted[len(prefix) :]]
        limit = parse_limit_setting(setting.key, setting.value)
        reading.statements.append(Statement(item, limit, setting))
    if fault is None:
        return None
    reason = f"{fault.value}, so that systemd reads no further"
    return Ignored(fault.path, fault.line, fault.key, reason)


def _find_reason(setting: Setting, section: str, wanted: str) -> str:
    """Return why systemd does not heed a setting; or nothing."""
    if not section:
        return "units of this kind run no process"
    if not setting.section:
        return f"stands before any section; it belongs in [{section}]"
    if setting.section != section:
        return f"stands in [{setting.section}]; it belongs in [{section}]"
    if setting.key != wanted:
        return f"is unknown here; known is {wanted}"
    try:
        parse_limit_setting(setting.key, setting.value)
    except ValueError as exc:
        return str(exc).partition(" is ignored by systemd: ")[2]
    return ""


def resolve_unit_limits(manager: Reading, unit: Reading) -> Iterator[tuple[str, str, Bound]]:
    """Yield each item, ``soft`` or ``hard``, and the line that wins it.

    The last line of the unit wins, both bounds at once, and shadows what the manager states.
    """
    statements = [*manager.statements, *unit.statements]
    for item in dict.fromkeys(LIMIT_KEYS.values()):
        ranked = [statement for statement in statements if statement.item == item]
        if ranked:
            soft = [one.setting.declare(one.limit.soft) for one in ranked]
            hard = [one.setting.declare(one.limit.hard) for one in ranked]
            yield item, "soft", Bound(soft[-1], tuple(soft[:-1]))
            yield item, "hard", Bound(hard[-1], tuple(hard[:-1]))
