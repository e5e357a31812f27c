# SPDX-License-Identifier: BSD-2-Clause
"""Compare a fleet with how an earlier run found it: what is newly red, and what is mended."""

from __future__ import annotations

from collections.abc import Mapping

from .core.finding import FAIL
from .core.values import NamedTuple
from .fleet import CHECKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .fleet_view import Fleet, Row

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
    not checked now is ``lost``, and nothing of it is mended. ``came`` and ``gone`` are in one run.
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
        told[_judge(old[name], new[name])].append(name)
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


def _judge(old: Row, new: Row) -> str:
    if new.host.state != CHECKED:
        return "lost" if old.host.state == CHECKED else ""
    if new.status == FAIL:
        return "still" if old.status == FAIL else "red"
    return "mended" if old.status == FAIL else ""


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
        for key in had - has:
            went[key].append(new.host.name)
    found = [
        CauseChange(str(one.get("code", "")), str(one["text"]), tuple(came[key]), tuple(went[key]))
        for key, one in samples.items()
        if came[key] or went[key]
    ]
    return sorted(found, key=lambda one: (-len(one.new), -len(one.mended), one.code, one.text))
