# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever dies of a limit is warned first: real processes, by all kinds of limits."""

from __future__ import annotations

import pytest

from tests.bench.guard import CASES, Case, is_possible, try_case

RUNS = 3


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_dies_was_warned(case: Case) -> None:
    """What Python does not tell of is explained at the error at the latest."""
    if not is_possible(case):
        pytest.skip(f"needs {case.needs}")
    outcome = try_case(case, RUNS)
    if case.is_seen and outcome.warned < RUNS:  # A machine with other work wakes the guard late.
        outcome = try_case(case, RUNS)
    assert outcome.died == RUNS
    assert outcome.warned + outcome.last_words == RUNS
    if case.is_seen:
        assert outcome.warned == RUNS
