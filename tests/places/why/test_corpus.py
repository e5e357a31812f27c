# SPDX-License-Identifier: GPL-3.0-or-later
"""What real programs wrote when they died is understood, and nobody is blamed who was not at fault."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.why.log_text import Words
from mlhost_limits.why.reasons import REASONS
from mlhost_limits.why.signs import find_signs
from mlhost_limits.why.verdict import judge_words, weigh

from tests.why.corpus import Case, list_cases, read_recorded
from tests.why.facts import load_facts
from tests.why.judge import RIGHT, WRONG, judge, judge_all, judge_all_on_host

CASES = list_cases()
RECORDED: dict[str, Any] = {
    name: made
    for group in {case.group for case in CASES}
    for name, made in read_recorded(group).items()
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_program_of_the_corpus_was_run_as_it_stands(case: Case) -> None:
    made = RECORDED[case.name]
    assert made["program"] == case.program
    assert made["expected"] == case.expected
    assert case.expected in REASONS
    assert not case.pair or case.pair in RECORDED


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_words_name_the_reason_or_leave_it_possible(case: Case) -> None:
    judged = judge(case, judge_words(Words(RECORDED[case.name]["text"])))
    assert judged.outcome != WRONG, judged.told
    assert not judged.blames


def test_most_are_told_first_and_the_host_makes_more_sure() -> None:
    by_words, by_host = list(judge_all()), list(judge_all_on_host())
    assert len(by_words) >= 120
    assert sum(one.outcome == RIGHT for one in by_words) >= 0.8 * len(by_words)
    assert sum(one.outcome == RIGHT for one in by_host) >= 0.85 * len(by_host)
    assert sum(one.is_sure for one in by_host) > sum(one.is_sure for one in by_words)


def test_no_host_excludes_what_was_the_reason() -> None:
    for case in CASES:
        made = RECORDED[case.name]
        verdict = judge_words(Words(made["text"]))
        if verdict and made["facts"]:
            codes = [one.code for one in (verdict.reason, *verdict.others)]
            told = weigh(verdict, find_signs(load_facts(made["facts"]), codes))
            left = [one.code for one in (told.reason, *told.others)]
            assert case.expected in left, (case.name, left)
