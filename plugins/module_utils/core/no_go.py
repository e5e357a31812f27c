# SPDX-License-Identifier: BSD-2-Clause
"""Say in one line what becomes of a run: what it dies of for sure, and of what by an estimate."""

from __future__ import annotations

from collections.abc import Iterable

from .finding import FAIL, Finding

CANNOT, TIGHT = "cannot", "tight"
"""No run survives it, or an estimate says so: the verdict of a cause that is of a run."""

_NAMES = {CANNOT: "cannot run: ", TIGHT: "tight: "}


def tell_no_go(findings: Iterable[Finding]) -> str:
    """Return the line, unbroken, if a run falls short; of a finding its first verdict counts."""
    told: dict[str, list[str]] = {word: [] for word in _NAMES}
    for finding in findings:
        word = next((cause.verdict for cause in finding.causes if cause.verdict), "")
        if finding.status == FAIL and word:
            told[word].append(f"{finding.requirement.item} of {finding.requirement.place}")
    parts = [f"{_NAMES[word]}{', '.join(dict.fromkeys(of))}" for word, of in told.items() if of]
    return f"no-go: {'; '.join(parts)}" if parts else ""
