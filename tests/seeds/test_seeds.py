# SPDX-License-Identifier: GPL-3.0-or-later
"""What of the five failures needs no torch, and that no column is true for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .drawn import LIMITS, count, draw, find_resource, lessen
from .drawn_figures import sum_up
from .settings import can, without
from .stand_ins import lack_descriptors, read_half_a_file, rename_onto_leftovers
from .trial import Command, Trial, try_trial
from .webdataset import ALONE, be_locked_out, miss_the_cache

SEED, MANY = 1, 200
ROOT = pytest.mark.skipif(not can(*without("dac_override")), reason="needs root")


@pytest.mark.parametrize("make", [miss_the_cache, pytest.param(be_locked_out, marks=ROOT)])
def test_a_cache_that_cannot_be_used_is_foretold_and_mended(
    make: Callable[[str], Trial],
) -> None:
    outcome = try_trial(make(ALONE))
    assert outcome.holds, outcome


@pytest.mark.parametrize("make", [lack_descriptors, read_half_a_file, rename_onto_leftovers])
def test_a_run_of_the_standard_library_fails_as_foretold(make: Callable[[], Trial]) -> None:
    outcome = try_trial(make())
    assert outcome.holds, outcome


def say(text: str, status: int) -> Command:
    return Command(("sh", "-c", f"echo {text}; exit {status}"))


GOOD = Trial(
    name="good",
    dies_of="Errno 24",
    foretold="nofile soft 160",
    run=say("Errno 24", 1),
    check=say("nofile soft 160", 1),
    run_after=say("trained", 0),
    check_after=say("ok", 0),
)


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"run": say("Errno 24", 0)}, "failed_before"),
        ({"run": say("Errno 2", 1)}, "failed_before"),
        ({"check": say("nofile soft 160", 0)}, "predicted"),
        ({"check": say("nofile soft 160", 2)}, "predicted"),
        ({"check": say("memlock", 1)}, "predicted"),
        ({"check_after": say("ok", 1)}, "fixed"),
        ({"check_after": say("ok", 2)}, "fixed"),
        ({"run_after": say("trained", 1)}, "passed_after"),
    ],
)
def test_a_column_is_true_only_for_what_was_seen(change: dict[str, Any], column: str) -> None:
    assert try_trial(GOOD).holds
    columns = try_trial(GOOD._replace(**change)).columns
    assert [name for name, true in columns.items() if not true] == [column]


def test_a_run_that_hangs_has_failed_where_that_is_expected() -> None:
    hung = Command(("sleep", "9"))
    assert not try_trial(GOOD._replace(run=hung, patience=1)).failed_before
    assert try_trial(GOOD._replace(run=hung, patience=1, dies_of="Errno 24|HUNG")).failed_before


def test_runs_are_drawn_the_same_each_time_and_differ() -> None:
    drawn = [draw(SEED, number) for number in range(MANY)]
    assert drawn == [draw(SEED, number) for number in range(MANY)]
    assert {one.limit for one in drawn} == set(LIMITS)
    assert len({str(one) for one in drawn}) > MANY // 2


def test_what_a_run_does_not_survive_is_less_than_it_needs() -> None:
    for number in range(MANY):
        drawn = draw(SEED, number)
        needed = count(drawn)[find_resource(drawn.limit)]
        assert 0 < lessen(drawn.limit, needed) < needed


def test_the_figures_of_runs_are_sums_of_their_rows() -> None:
    row = {
        "limit": "nproc",
        "library": "torch",
        "wrong_go": 1,
        "wrong_no_go": 0,
        "off": {"tasks": 0.5},
    }
    told = sum_up([row, {**row, "wrong_go": 0, "wrong_no_go": 1, "off": {"tasks": -0.5}}, row])
    assert (told["runs"], told["tried"]) == (3, 6)
    assert (told["wrong_go"], told["wrong_no_go"]) == (2, 1)
    assert told["off"] == {"tasks": [-0.5, 0.5]}
