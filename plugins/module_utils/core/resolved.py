# SPDX-License-Identifier: BSD-2-Clause
"""What files state, value by value, as data and as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from .cause import locate
from .values import UNLIMITED, Bound, NamedTuple, format_quantity

FORMAT, VERSION = "mlhost.limits/resolve", 1
"""The version grows when a reader of the one before would be wrong; keys may be added without."""


class Query(NamedTuple):
    """Of whom and of what the values are asked.

    ``user`` is ``None`` for root and the ordinary user, for whom ``*`` stands; ``service`` is the
    PAM service whose stack must hold pam_limits, ``None`` where none is asked; ``unit`` is one of
    systemd's, or system.conf for all units, of the users' managers too.
    """

    user: str | None
    service: str | None
    unit: str


class Effect(NamedTuple):
    """What counts in the place of what a file states, and why; no value where that is not known."""

    value: int | str | None
    why: str


def describe(
    place: str, item: str, kind: str, bound: Bound, unit: str, effect: Effect | None = None
) -> dict[str, object]:
    """Return one value with who states it, and what that beats.

    :param effect: What counts, where it is not what is stated.
    """
    stated = format_value(bound.winner.value, unit, item)
    counts = effect or Effect(bound.winner.value, "")
    return {
        "place": place,
        "item": item,
        "bound": kind,
        "value": stated,
        "effective": None if counts.value is None else format_value(counts.value, unit, item),
        "why": counts.why,
        "declared": locate(bound.winner),
        "shadows": [locate(one) for one in bound.shadowed],
    }


def format_value(value: int | str, unit: str, item: str) -> str:
    if item == "nofile" and value == UNLIMITED:
        return "the value of fs.nr_open"
    return value if isinstance(value, str) else format_quantity(value, unit)


def format_resolved(stated: Iterable[dict[str, object]]) -> Iterator[str]:
    """Yield what was resolved as lines for people."""
    entry: dict[str, object] = {}
    for entry in stated:
        if "reason" in entry:
            yield f"{entry['place']}: {entry['reason']}"
            continue
        kind = "" if entry["bound"] == "value" else f" {entry['bound']}"
        yield f"{entry['place']} {entry['item']}{kind} = {entry['value']}"
        for mark, text in _places(entry):
            yield f"     {mark} {text}"
    if not entry:
        yield "no file in this tree states a limit"


def format_entries(stated: Iterable[dict[str, object]]) -> Iterator[str]:
    """Yield what was resolved as JSON, piece by piece: its texts are longer than what they say."""
    head = json.dumps({"format": FORMAT, "version": VERSION}, indent=2).rstrip("\n}")
    last = ""
    for entry in stated:
        yield f"{last}," if last else f'{head},\n  "statements": ['
        last = "    " + json.dumps(entry, indent=2).replace("\n", "\n    ")
    yield f"{last}\n  ]\n}}" if last else f'{head},\n  "statements": []\n}}'


def _places(entry: dict[str, object]) -> Iterator[tuple[str, str]]:
    if entry["why"]:
        counts = "" if entry["effective"] is None else f"{entry['effective']} counts: "
        yield "but    ", f"{counts}{entry['why']}"
    for mark, places in (("by     ", [entry["declared"]]), ("shadows", entry["shadows"])):
        for place in places:  # type: ignore[attr-defined]
            yield mark, f'{place["file"]}:{place["line"]} "{place["text"]}"'
