# SPDX-License-Identifier: GPL-3.0-or-later
"""What was measured of drawn runs, against what is foretold of them today; no torch is needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from . import drawn, drawn_deepspeed
from .drawn import LIMITS, MEASURED, Drawn, Tried, count, draw, find_off, find_resource
from .drawn_figures import is_within, sum_up

ROWS = json.loads(MEASURED.read_text())
WRONG_NO_GO = 0.02
SHARP = ("descriptors", "tasks", "mappings", "shared_memory")
MOST, LEAST = 0.36, -0.06
"""By how much a forecast of memory may be off: few are above 30 %, and where a heap grows as it
likes one is below.
"""


def remember(row: dict[str, Any]) -> Drawn:
    return Drawn(row["limit"], row["library"], row["options"], row["returns_memory"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['limit']}-{row['library']}")
def test_a_forecast_is_as_near_to_a_measured_run_as_it_was(row: dict[str, Any]) -> None:
    one = remember(row)
    resource, needed = find_resource(one.limit), row["needed"]
    foretold = count(one)[resource]
    grew = ("memory", "shared_memory")  # Rules that were mended since.
    assert foretold >= needed if resource in grew else foretold == needed
    off = find_off(one, row["peaks"])
    assert [name for name in SHARP if name in off and not is_within(name, off[name])] == []
    assert (0 if row["returns_memory"] else LEAST) <= off["memory"] <= MOST
    assert is_within("address_space", off["address_space"])


def test_every_measured_run_lived_at_what_it_needs_and_hardly_one_below() -> None:
    assert [row["number"] for row in ROWS if not row["lives"]] == []
    assert sum(not row["dies"] for row in ROWS) <= len(ROWS) * WRONG_NO_GO
    assert all(row["less"] < row["needed"] for row in ROWS)


def test_every_limit_and_library_was_measured() -> None:
    assert len(ROWS) >= 100
    assert {row["limit"] for row in ROWS} == set(LIMITS)
    assert {row["library"] for row in ROWS} == {*drawn.LIBRARIES, drawn_deepspeed.LIBRARY}


def test_a_run_is_drawn_again_from_its_seed() -> None:
    assert [draw(7, number) for number in range(50)] == [draw(7, number) for number in range(50)]
    assert draw(7, 1) != draw(8, 1)


@pytest.mark.parametrize(
    ("at", "below", "wrong_go", "wrong_no_go"),
    [
        ((True, True), (False, False), 0, 0),
        ((True, False), (False, False), 1, 0),
        ((True, True), (True, False), 1, 0),
        ((True, True), (False, True), 0, 1),
        ((False, True), (False, False), 0, 1),
    ],
)
def test_what_is_wrong_is_counted(
    monkeypatch: pytest.MonkeyPatch,
    at: tuple[bool, bool],
    below: tuple[bool, bool],
    wrong_go: int,
    wrong_no_go: int,
) -> None:
    tried = iter([Tried(*at, {}, "what it printed"), Tried(*below, {}, "")])
    monkeypatch.setattr(drawn, "attempt", lambda *_asked: next(tried))
    row = drawn.compare(7, 0)
    assert (row["wrong_go"], row["wrong_no_go"]) == (wrong_go, wrong_no_go)
    assert sum_up([row, row])["wrong_go"] == 2 * wrong_go
    assert row["printed"] == ("" if at[1] else "what it printed")
