# SPDX-License-Identifier: GPL-3.0-or-later
"""What of the five failures needs no torch, and that no column is true for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .settings import can, without
from .stand_ins import lack_descriptors, read_half_a_file, rename_onto_leftovers
from .trial import Command, Trial, try_trial
from .webdataset import ALONE, be_locked_out, miss_the_cache

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
