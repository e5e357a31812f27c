# SPDX-License-Identifier: BSD-2-Clause
"""Write findings for people, at most 80 columns wide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from .finding import (
    FAIL,
    FORETOLD,
    LATER,
    PASS,
    UNKNOWN,
    WAIVED,
    Finding,
    count_statuses,
    format_observed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cause import Cause, Link
    from .waivers import Waiver

WIDTH = 80
_WORD = r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\]|['"\\])+"""
"""A word of a shell with all its quotes: where ``it's`` is quoted, it has several pieces."""

INDENT, DEEPER = " " * 5, " " * 10
START, _NO_START = "start", "none could be started:"  # The item that something starts at all.
_MARKS = {PASS: "ok  ", FAIL: "FAIL", UNKNOWN: "??? ", LATER: "late", WAIVED: "wvd "}


def format_report(
    findings: list[Finding], connection: Sequence[Cause] = (), idle: Sequence[Waiver] = ()
) -> list[str]:
    """Return what is met, what is not and what is unknown, place by place, and the verdict.

    Where something falls short, now or after a boot, the causes and remedies stand below it. The
    commands of a remedy may be wider where they cannot be broken.

    :param connection: Why this process has less than a fresh session; this is not a finding.
    :param idle: Waivers that nothing needs.
    """
    lines = format_others(findings, (FAIL, UNKNOWN, LATER, WAIVED, PASS))
    lines += format_beside(findings, connection, idle)
    from .no_go import tell_no_go  # Of runs.

    told = tell_no_go(findings)
    return [*lines, format_verdict(findings), *(wrap(told) if told else [])]


def format_others(findings: list[Finding], statuses: Sequence[str]) -> list[str]:
    """Return the lines of the findings of some statuses, place by place."""
    told: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for place, members in _by_place(findings).items():
        for status in statuses:
            group = [finding for finding in members if finding.state == status]
            if group and (status != PASS or len(group) == len(members)):
                for text, why in _explain(status, group):
                    told.setdefault((status, text, why), []).append(place)
    lines = []
    for (status, text, why), places in told.items():
        lines += wrap(f"{_MARKS[status]} {', '.join(_merge_places(places))}: {text}")
        lines += why
    return lines


def format_passing(findings: list[Finding]) -> list[str]:
    """Return what each place has where all of it is met."""
    return format_others(findings, (PASS,))


def format_beside(
    findings: list[Finding], connection: Sequence[Cause], idle: Sequence[Waiver]
) -> Iterator[str]:
    """Yield the lines of what is not a finding."""
    yield from format_notes(note_workers(findings))
    for waiver in idle:
        yield from wrap(f"note nothing needs the waiver of {waiver.describe()}")
    for cause in connection:
        yield from wrap(f"note {cause.text}")
        yield from wrap(cause.remedy.text, "     fix  ", DEEPER)


def format_notes(notes: Iterable[str]) -> list[str]:
    """Return the lines of what is said beside the findings."""
    return [line for note in notes for line in wrap(f"note {note}")]


def note_workers(findings: list[Finding]) -> Iterator[str]:
    """Yield how many workers each thing allows, of a run that has no more than fit."""
    for finding in findings:
        if finding.requirement.item == "workers" and finding.status == PASS:
            most = finding.observation.value
            told = "1 worker fits" if most == 1 else f"{most} workers fit"
            yield f"at most {told}: {finding.observation.how}"


def _explain(status: str, group: list[Finding]) -> list[tuple[str, tuple[str, ...]]]:
    """Return what is told of a place, each with its reasons; what has the same ones, together."""
    plain = not any(one.causes or one.waiver or one.owner for one in group)
    if (status == PASS and not any(one.causes for one in group)) or (status == UNKNOWN and plain):
        return [(_describe(status, group), ())]
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in group:
        alike.setdefault(tuple(format_reasons(finding)), []).append(finding)
    return [(_describe(status, members), why) for why, members in alike.items()]


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
    late = f" ({counts[LATER]} not after a boot)" if counts[LATER] else ""
    more = f", {counts[WAIVED]} waived" if counts[WAIVED] else ""
    more = more if findings else "; nothing was judged"
    unknown = f"{counts[UNKNOWN]} unknown{note_first_boot(findings)}"
    fail = f"{counts[FAIL]} fail{_note_owners(findings)}"
    return f"{counts[PASS]} pass{late}, {fail}, {unknown}{more}"


def _note_owners(findings: list[Finding]) -> str:
    """Say how much of what fails is users' own doing."""
    own = sum(one.status == FAIL and bool(one.owner) for one in findings)
    return f" ({own} by users' own files or processes)" if own else ""


def note_first_boot(findings: list[Finding]) -> str:
    """Say of an image how much of what is unknown its files are sure to give."""
    foretold = [one for one in findings if one.observation.how == FORETOLD]
    if not foretold:
        return ""
    good = [one for one in foretold if one.status == UNKNOWN and one.outlook.after_boot == PASS]
    return f" until the first boot ({len(good)} predicted to pass)"


def format_failures(findings: list[Finding]) -> list[str]:
    """Return one sentence for each place that falls short, what root decides first."""
    failed = [finding for finding in findings if finding.status == FAIL]
    owners = dict.fromkeys(["", *(finding.owner for finding in failed)])
    return [
        f"{place}: {_describe(FAIL, group)}{f' ({describe_owner(owner)})' if owner else ''}"
        for owner in owners
        for place, group in _by_place([one for one in failed if one.owner == owner]).items()
    ]


def describe_owner(owner: str) -> str:
    """Return whose doing a finding is that root does not decide."""
    return f"{owner}: own file or process; the node is not at fault"


def _describe(status: str, group: list[Finding]) -> str:
    unseen = [one.observation.reason for one in group if one.observation.value is None]
    if status in (UNKNOWN, WAIVED) and unseen:
        return "; ".join(dict.fromkeys(unseen))
    if status == PASS:
        return _summary(group)
    if status == LATER:
        items = dict.fromkeys(one.requirement.item for one in group)
        return f"{', '.join(items)} {describe_late(group[0])}"
    return "; ".join(describe_failures(group))


def describe_late(finding: Finding) -> str:
    """Return what is met now, and when no more."""
    names = {
        "next_session": "next login",
        "next_restart": "next restart",
        "after_boot": "next boot",
    }
    told = finding.outlook._asdict()
    when = next(name for key, name in names.items() if told[key] == FAIL)
    value, wanted = finding.observation.value, finding.requirement
    has = "" if value is None else f"{format_observed(value, wanted.unit)} now, "
    return f"{has}not enough after the {when}"


def describe_failures(group: Iterable[Finding]) -> Iterator[str]:
    """Yield ``nofile soft 1024, required 65536``; soft and hard in one where they are alike."""
    told: dict[tuple[str, str], list[str]] = {}
    for finding in group:
        wanted, value = finding.requirement, finding.observation.value
        observed = "not known" if value is None else format_observed(value, wanted.unit)
        text = f"{observed}, required {wanted.describe()}"
        key = (_NO_START, observed) if wanted.item == START else (wanted.item, text)
        bounds = told.setdefault(key, [])
        bounds += [wanted.bound] if wanted.bound not in bounds else []
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


def format_reasons(finding: Finding) -> list[str]:
    """Return why a finding falls short, what to do about it, and what comes next."""
    lines = wrap(finding.waiver, "     note ", DEEPER) if finding.waiver else []
    if finding.status == WAIVED:
        return lines
    if finding.owner:
        lines += wrap(describe_owner(finding.owner), "     who  ", DEEPER)
    for cause in finding.causes:
        remedy = cause.remedy
        then = f"; then {remedy.then}" if remedy.then else ""
        lines += wrap(cause.text, "     why  ", DEEPER)
        lines += wrap(cause.writer, "     who  ", DEEPER) if cause.writer else []
        lines += wrap(f"{remedy.text}{then}", "     fix  ", DEEPER)
        for number, command in enumerate(remedy.lines):
            lines += break_command(command, "     run  " if number == 0 else DEEPER)
    names = {"next_session": "next session", "next_restart": "next restart"}
    asked = {**names, "after_boot": "after boot"}
    told = finding.outlook._asdict()
    words = [f"{name}: {told[key]}" for key, name in asked.items() if told[key]]
    return [*lines, f"     {'   '.join(words)}"] if words else lines


def format_links(place: str, item: str, links: Iterable[Link]) -> list[str]:
    """Return a chain for people: each link with its value, its source and since when."""
    links = list(links)
    width = max((len(link.name) for link in links), default=0)
    lines = wrap(f"{item} of {place}, from the kernel to the process")
    for link in links:
        since = f", since {link.changed}" if link.changed else ""
        start = f"  {link.name:<{width}}  "
        value = f"{link.value}  " if link.value else ""
        lines += wrap(f"{value}{link.source}{since}", start, " " * len(start))
    return lines


def break_command(command: str, start: str) -> list[str]:
    """Break a command at its blanks so that it can still be pasted into a shell."""
    lines, line = [], start
    for word in re.findall(_WORD, _clean(command), re.DOTALL):
        blank = "" if line.isspace() or line == start else " "
        if len(line) + len(blank) + len(word) > WIDTH - 2 and line.strip() and line != start:
            lines.append(f"{line} \\")
            line, blank = f"{DEEPER}  ", ""
        line += blank + word
    return [*lines, line]


def wrap(text: str, start: str = "", indent: str = INDENT) -> list[str]:
    """Break a line at blanks, and a word that is too long anywhere; what follows is indented."""
    lines, line = [], start
    for word in _clean(text.replace("\t", "\\t")).split(" "):
        joined = line + word if line == start else f"{line} {word}"
        if len(joined) > WIDTH and line.strip():
            lines.append(line.rstrip())
            joined = indent + word
        while len(joined) > WIDTH:
            lines.append(joined[:WIDTH])
            joined = indent + joined[WIDTH:]
        line = joined
    return [*lines, line.rstrip()]


def _clean(text: str) -> str:
    """Replace what a terminal would act on: names come from users and containers."""
    return "".join(char if char.isprintable() else "?" for char in text)
