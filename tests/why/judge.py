# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask what the recorded words died of, and compare it with what they were made to die of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mlhost_limits.why.log_text import Words
from mlhost_limits.why.reasons import REASONS
from mlhost_limits.why.signs import find_signs
from mlhost_limits.why.verdict import POSSIBLE, Verdict, judge_words, weigh

from .corpus import Case, list_cases, read_recorded
from .facts import load_facts

RIGHT, OPEN, WRONG = "right", "open", "wrong"


class Judged(NamedTuple):
    """One case: right, open (the truth is possible, and something else stands first), or wrong.

    ``blames`` tells that a limit was named for sure which was not at fault.
    """

    case: Case
    outcome: str
    told: str
    is_sure: bool
    blames: bool


def judge_all() -> Iterator[Judged]:
    """Yield what is told of every case that was recorded."""
    recorded: dict[str, Any] = {}
    for case in list_cases():
        recorded = recorded if case.group in recorded else {case.group: read_recorded(case.group)}
        made = recorded[case.group].get(case.name)
        if made:
            yield judge(case, judge_words(Words(made["text"])))


def judge_all_on_host() -> Iterator[Judged]:
    """Yield what is told of every case with what its host showed."""
    recorded: dict[str, Any] = {}
    for case in list_cases():
        recorded = recorded if case.group in recorded else {case.group: read_recorded(case.group)}
        made = recorded[case.group].get(case.name, {})
        verdict = judge_words(Words(made.get("text", "")))
        if verdict and made.get("facts"):
            codes = [one.code for one in (verdict.reason, *verdict.others)]
            yield judge(case, weigh(verdict, find_signs(load_facts(made["facts"]), codes)))
        elif made:
            yield judge(case, verdict)


def judge(case: Case, verdict: Verdict | None) -> Judged:
    """Return whether a verdict is right about a case."""
    if verdict is None:
        return Judged(case, WRONG, "nothing", False, False)
    reasons = (verdict.reason, *verdict.others)
    is_sure = verdict.sure != POSSIBLE
    told = f"{verdict.sure}: {', '.join(one.code for one in reasons)}"
    if case.expected not in [one.code for one in reasons]:
        blames = is_sure and verdict.reason.is_limit
        return Judged(case, WRONG, told, is_sure, blames)
    return Judged(case, RIGHT if reasons[0].code == case.expected else OPEN, told, is_sure, False)


def is_limit(case: Case) -> bool:
    """Tell whether a limit ended a case."""
    return bool(REASONS[case.expected].is_limit)
