# SPDX-License-Identifier: BSD-2-Clause
"""Compare a fleet with how an earlier run found it: what is newly red, and what is mended."""

from __future__ import annotations

from collections.abc import Mapping

from .core.finding import FAIL, LATER, PASS, UNKNOWN, WAIVED
from .core.values import NamedTuple
from .fleet import CHECKED, find_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .fleet_view import Column, Fleet, Row

    Names = tuple[str, ...]
    Key = tuple[object, ...]


class CauseChange(NamedTuple):
    """A cause that some hosts have now and had not, or had and have no longer."""

    code: str
    text: str
    new: Names
    mended: Names


class Changes(NamedTuple):
    """What differs between two runs, by host and by cause.

    ``red`` were not red, ``mended`` were and are no longer, ``still`` were and are. A host that is
    not checked now, or not for all that it did not meet, is ``lost``: nothing of it is mended.
    ``came`` and ``gone`` are in one run.
    """

    since: str
    red: Names
    mended: Names
    still: Names
    lost: Names
    came: Names
    gone: Names
    causes: tuple[CauseChange, ...]


def find_changes(before: Fleet, now: Fleet, since: str = "") -> Changes:
    """Return what is new and what is mended.

    :param since: When the earlier run was written.
    """
    old, new = _by_name(before), _by_name(now)
    both = [name for name in new if name in old]
    told: dict[str, list[str]] = {kind: [] for kind in ("red", "mended", "still", "lost", "")}
    for name in both:
        told[_judge(old[name], new[name], _follow(before, old[name], now, new[name]))].append(name)
    return Changes(
        since,
        tuple(told["red"]),
        tuple(told["mended"]),
        tuple(told["still"]),
        tuple(told["lost"]),
        tuple(name for name in new if name not in old),
        tuple(name for name in old if name not in new),
        tuple(_compare_causes(before, now, [(old[name], new[name]) for name in both])),
    )


def _by_name(fleet: Fleet) -> dict[str, Row]:
    return {row.host.name: row for row in fleet.rows}


def _judge(old: Row, new: Row, since: set[str]) -> str:
    """Return what became of a host; ``since`` is what became of that which fell short on it."""
    if new.host.state != CHECKED:
        return "lost" if old.host.state == CHECKED else ""
    if new.status == FAIL:
        return "still" if old.status == FAIL else "red"
    if old.status != FAIL:
        return ""
    if UNKNOWN in since:
        return "lost"
    return "still" if LATER in since else "" if WAIVED in since else "mended"


def _follow(before: Fleet, old: Row, now: Fleet, new: Row) -> set[str]:
    """Return the statuses that the requirements have now which a host did not meet before.

    What is no longer asked is unknown, unless it was something that may have ended.
    """
    had, has = _find_statuses(before, old), _find_statuses(now, new)
    short = [column for column, statuses in had.items() if FAIL in statuses]
    ended = {PASS}
    return {
        status
        for column in short
        for status in has.get(column, ended if _may_end(column) else {UNKNOWN})
    }


def _find_statuses(fleet: Fleet, row: Row) -> dict[Column, set[str]]:
    return {
        fleet.columns[number]: {find_status(fleet.findings[one]) for one in found}
        for number, found in enumerate(row.cells)
        if found
    }


def _may_end(column: Column) -> bool:
    return column.place.partition(":")[0] in ("container", "process")


def _compare_causes(before: Fleet, now: Fleet, pairs: list[tuple[Row, Row]]) -> list[CauseChange]:
    """Return causes that came or went on hosts that both runs checked, the widest first."""
    samples: dict[Key, Mapping[str, object]] = {}
    for fleet in (before, now):
        samples.update({group.key: group.sample for group in fleet.groups})
    came: dict[Key, list[str]] = {key: [] for key in samples}
    went: dict[Key, list[str]] = {key: [] for key in samples}
    for old, new in pairs:
        if old.host.state != CHECKED or new.host.state != CHECKED:
            continue
        had = {before.groups[number].key for number in old.needs}
        has = {now.groups[number].key for number in new.needs}
        for key in has - had:
            came[key].append(new.host.name)
        is_seen = _follow(before, old, now, new) <= {PASS, FAIL}
        for key in had - has if is_seen else ():
            went[key].append(new.host.name)
    found = [
        CauseChange(str(one.get("code", "")), str(one["text"]), tuple(came[key]), tuple(went[key]))
        for key, one in samples.items()
        if came[key] or went[key]
    ]
    return sorted(found, key=lambda one: (-len(one.new), -len(one.mended), one.code, one.text))
