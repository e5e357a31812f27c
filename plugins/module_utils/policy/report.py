# SPDX-License-Identifier: BSD-2-Clause
"""Write findings for people, at most 80 columns wide."""

from __future__ import annotations

from .finding import FAIL, PASS, UNKNOWN, Finding, count_statuses, format_observed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 80
_INDENT = " " * 5
_MARKS = {PASS: "ok  ", FAIL: "FAIL", UNKNOWN: "??? "}


def format_report(findings: list[Finding]) -> list[str]:
    """Return what is met, what is not and what is unknown, place by place, and the verdict."""
    told: dict[tuple[str, str], list[str]] = {}
    for place, members in _by_place(findings).items():
        for status in (FAIL, UNKNOWN, PASS):
            group = [finding for finding in members if finding.status == status]
            if group and (status != PASS or len(group) == len(members)):
                told.setdefault((status, _describe(status, group)), []).append(place)
    lines = []
    for (status, text), places in told.items():
        lines += _wrap(f"{_MARKS[status]} {', '.join(_merge_places(places))}: {text}")
    return [*lines, format_verdict(findings)]


def _merge_places(places: list[str]) -> list[str]:
    """Name the ways in of one user together: ``session:root@sshd,su,cron``."""
    merged: dict[str, list[str]] = {}
    for place in places:
        head, mark, way = place.rpartition("@")  # The name of a user may hold the sign as well.
        merged.setdefault(head + mark if mark else place, []).append(way if mark else "")
    return [head + ",".join(tails) for head, tails in merged.items()]


def format_verdict(findings: list[Finding]) -> str:
    """Return the last line: how many of each."""
    counts = count_statuses(findings)
    return f"{counts[PASS]} pass, {counts[FAIL]} fail, {counts[UNKNOWN]} unknown"


def format_failures(findings: list[Finding]) -> list[str]:
    """Return one sentence for each place that falls short."""
    failed = _by_place([finding for finding in findings if finding.status == FAIL])
    return [f"{place}: {_describe(FAIL, group)}" for place, group in failed.items()]


def _describe(status: str, group: list[Finding]) -> str:
    if status == UNKNOWN:
        return "; ".join(dict.fromkeys(finding.observation.reason for finding in group))
    if status == PASS:
        return _summary(group)
    return "; ".join(_describe_failures(group))


def _describe_failures(group: list[Finding]) -> Iterator[str]:
    """Yield ``nofile soft 1024, required 65536``; soft and hard in one where they are alike."""
    told: dict[tuple[str, str], list[str]] = {}
    for finding in group:
        wanted, value = finding.requirement, finding.observation.value
        observed = "" if value is None else format_observed(value, wanted.unit)
        text = f"{observed}, required {wanted.describe()}"
        told.setdefault((wanted.item, text), []).append(wanted.bound)
    for (item, text), bounds in told.items():
        bound = f"{bounds[0]} " if len(bounds) == 1 and bounds[0] != "value" else ""
        yield f"{item} {bound}{text}"


def _by_place(findings: list[Finding]) -> dict[str, list[Finding]]:
    places: dict[str, list[Finding]] = {}
    for finding in findings:
        places.setdefault(finding.requirement.place, []).append(finding)
    return places


def _summary(members: list[Finding]) -> str:
    """Return what a place has, soft and hard side by side: ``nofile 65536:1048576``."""
    parts: dict[str, list[str]] = {}
    for finding in members:
        value = finding.observation.value
        text = "" if value is None else format_observed(value, finding.requirement.unit)
        parts.setdefault(finding.requirement.item, []).append(text)
    return ", ".join(f"{item} {_join(texts)}" for item, texts in parts.items())


def _join(texts: list[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else ":".join(texts)


def _wrap(text: str) -> list[str]:
    """Break a line at blanks, and a word that is too long anywhere; what follows is indented."""
    lines, line = [], ""
    for word in _clean(text).split(" "):
        joined = f"{line} {word}" if line else word
        if len(joined) > WIDTH and line.strip():
            lines.append(line.rstrip())
            joined = _INDENT + word
        while len(joined) > WIDTH:
            lines.append(joined[:WIDTH])
            joined = _INDENT + joined[WIDTH:]
        line = joined
    return [*lines, line.rstrip()]


def _clean(text: str) -> str:
    """Replace what a terminal would act on: names come from users and containers."""
    return "".join(char if char.isprintable() else "?" for char in text)
