# SPDX-License-Identifier: BSD-2-Clause
"""Say in one line what becomes of a run: what it dies of for sure, and of what by an estimate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .cause import CANNOT, TIGHT
from .finding import FAIL, Finding

_NAMES = {CANNOT: "cannot run: ", TIGHT: "tight: "}


def tell_no_go(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the line, if a run falls short; the first verdict of a finding's causes counts."""
    told: dict[str, list[str]] = {word: [] for word in _NAMES}
    for finding in findings:
        word = next((cause.verdict for cause in finding.causes if cause.verdict), "")
        if finding.status == FAIL and word:
            told[word].append(f"{finding.requirement.item} of {finding.requirement.place}")
    parts = [f"{_NAMES[word]}{', '.join(dict.fromkeys(of))}" for word, of in told.items() if of]
    if parts:
        yield f"no-go: {'; '.join(parts)}"
