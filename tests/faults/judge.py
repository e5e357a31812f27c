# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell from the JSON of a check whether a fault was named right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .fault import Culprit, Fault

Finding = dict[str, Any]
Cause = dict[str, Any]
Lines = Mapping[Culprit, int]
"""The number of the line at fault, as it was right after the fault was made."""

LATER = ("next_session", "next_restart", "after_boot")


def find_short(findings: Iterable[Finding]) -> list[Finding]:
    """Return what is not met now, then what will not be later.

    What is unknown counts where a reason is given for it: a container that does not start.
    """
    findings = list(findings)
    now = [one for one in findings if one["status"] == "fail"]
    unknown = [one for one in findings if one["status"] == "unknown" and one["causes"]]
    later = [
        one
        for one in findings
        if one["status"] == "pass" and "fail" in [one[name] for name in LATER]
    ]
    return now + unknown + later


def is_green(findings: Iterable[Finding]) -> bool:
    """Tell whether all is met, now and later; what is unknown is not."""
    findings = list(findings)
    return not find_short(findings) and all(one["status"] == "pass" for one in findings)


def describe(finding: Finding) -> str:
    return f"{finding['place']} {finding['item']} {finding['bound']}"


def is_culprit(cause: Cause, culprit: Culprit, lines: Lines) -> bool:
    """Tell whether a cause names what is at fault, in the words that say why."""
    said = f"{cause['code']}: {cause['text']}"
    at = cause["at"] or {}
    if culprit.words and not re.search(culprit.words, said, re.IGNORECASE):
        return False
    if culprit.line:
        return bool(at) and (at["file"], at["line"]) == (culprit.file, lines[culprit])
    return culprit.file in said or at.get("file") == culprit.file


def is_named_by(cause: Cause, fault: Fault, lines: Lines) -> bool:
    return any(is_culprit(cause, culprit, lines) for culprit in fault.culprits)


def find_misses(fault: Fault, lines: Lines, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield what is wrong with the causes that a host with this fault alone is given.

    The fault must show where it should, be the cause of all that falls short, and be the only one.
    """
    short = find_short(findings)
    for pattern in fault.shows:
        if not any(re.search(pattern, describe(one)) for one in short):
            yield f"does not show at {pattern}"
    for finding in short:
        if not finding["causes"]:
            yield f"no cause for {describe(finding)}"
        for cause in finding["causes"]:
            if not is_named_by(cause, fault, lines):
                yield f"wrong cause: {cause['code']}: {cause['text']}"


def find_strangers(
    faults: Iterable[Fault], lines: Lines, findings: Iterable[Finding]
) -> Iterator[str]:
    """Yield the causes that are none of several faults."""
    faults = list(faults)
    for finding in find_short(findings):
        for cause in finding["causes"]:
            if not any(is_named_by(cause, fault, lines) for fault in faults):
                yield f"wrong cause: {cause['code']}: {cause['text']}"


def find_named(faults: Iterable[Fault], lines: Lines, findings: Iterable[Finding]) -> set[str]:
    """Return the names of the faults that some cause names."""
    causes = [cause for finding in find_short(findings) for cause in finding["causes"]]
    return {
        fault.name for fault in faults if any(is_named_by(cause, fault, lines) for cause in causes)
    }


def first_cause(findings: Iterable[Finding]) -> Cause | None:
    """Return what a person would put right first."""
    for finding in find_short(findings):
        for cause in finding["causes"]:
            return dict(cause)
    return None
