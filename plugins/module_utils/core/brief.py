# SPDX-License-Identifier: BSD-2-Clause
"""Write findings as a list of things to do: a block for each reason, the widest first."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .edit import OURS
from .finding import FAIL, LATER, PASS, UNKNOWN, WAIVED, Finding, count_statuses
from .no_go import tell_no_go
from .reasons import Reason, find_reasons, name_places
from .report import (
    DEEPER,
    INDENT,
    START,
    WIDTH,
    break_command,
    describe_failures,
    describe_late,
    describe_owner,
    format_beside,
    format_others,
    format_passing,
    note_first_boot,
    wrap,
)
from .values import RLIMITS, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cause import Cause, Remedy
    from .waivers import Waiver

_APPEND = r"echo ('(?:[^']|'\"'\"')*'|[^\s'\"]+) >> (\S+)"
_MOST_TEXTS, _MOST_LINES = 2, 5
_ENDS = r"systemctl (?:--\S+ )*(?:re)?(?:start|load-or-restart) (?!ssh|crio)"
_EDITS = (" >> ", "nothing was done")  # In a command that adds to a file, or edits a line.
_ACTIVATES = r"(?:^|[\s'])(?:systemctl(?! stop)|sysctl(?! -w)|mount|scontrol|podman|docker) "
_LIVING = (
    ("--pid", r"process:(\d+) .*"),
    ("--unit", r"service:([\w:.\\@-]+)"),
    ("--container", r"container:(?:docker|podman)/([\w.-]+)"),
)
"""How ``heal`` is told of what runs; a container of a user's own is not root's to raise."""
_AFTER = {"docker": "restart docker", "crio": "restart crio"}
"""What must be done before a section that was provisioned counts, where no cause says so."""


class Told(NamedTuple):
    """What a report says beside its findings."""

    connection: Sequence[Cause] = ()
    """Why the looking process has less than a fresh session, which is not a finding."""
    idle: Sequence[Waiver] = ()
    """Waivers that nothing needs."""
    samples: Sequence[str] = ()
    """Users who stand for everybody that the policy does not name."""
    provision: str = "mlhost-limits provision"
    """What makes the policy true, to which ``--only SECTION`` may be added."""
    of_section: Mapping[str, str] = {}
    """What makes one section true, where that is not ``provision --only SECTION``."""
    more: str = "-v"
    """What shows every finding."""
    explain: str = ""
    """What shows the way of a limit, to which a place and an item are added."""
    heal: str = ""
    """What says whether what runs can be raised as it is, to which it is added what that is."""


def format_brief(findings: list[Finding], told: Told) -> list[str]:
    """Return how many requirements fall short and why, and what to do, at most 80 columns wide.

    Each thing to do stands there once. Commands that cannot be broken are left to ``told.more``
    where ``provision`` does the same.
    """
    short, late = find_reasons(findings, FAIL), find_reasons(findings, LATER)
    lines = list(_format_head(findings, [*short, *late], told))
    done: set[str] = set()
    for number, reason in enumerate([*short, *late], 1):
        lines += wrap(f"{number:<4} {_describe_reason(reason, findings, told.samples)}")
        lines += _format_reason(reason, told, done)
    lines += format_others(findings, (UNKNOWN,))
    if not lines[1:]:
        lines += format_passing(findings)
    beside = format_beside(findings, told.connection, told.idle)
    told_last = tell_no_go(findings)
    return [*lines, *beside, *(wrap(told_last) if told_last else [])]


def format_head(findings: list[Finding]) -> str:
    """Return how many requirements are met, or fall short and for how many reasons."""
    counts = count_statuses(findings)
    reasons, late = len(find_reasons(findings)), len(find_reasons(findings, LATER))
    total = sum(counts[status] for status in (PASS, FAIL, UNKNOWN, WAIVED))
    if not total:
        return "nothing was judged"
    beside = []
    if counts[LATER]:
        beside.append(f"{counts[LATER]} will fall short after a boot, {_count(late)}")
    if counts[UNKNOWN]:
        beside.append(f"{counts[UNKNOWN]} unknown{note_first_boot(findings)}")
    if counts[WAIVED]:
        beside.append(f"{counts[WAIVED]} waived")
    number = counts[FAIL] or counts[PASS]
    start = f"{number} of {total} {'requirement' if total == 1 else 'requirements'}"
    is_one = 1 in (number, total)
    if counts[FAIL]:
        start += f" {'falls' if is_one else 'fall'} short, {_count(reasons)}"
    else:
        start += f" {'is' if is_one else 'are'} met"
    return "; ".join([start, *beside])


def _count(reasons: int) -> str:
    return "for one reason" if reasons == 1 else f"for {reasons} reasons"


def _format_head(findings: list[Finding], reasons: Sequence[Reason], told: Told) -> Iterator[str]:
    yield from wrap(format_head(findings))
    ours = [one for one in reasons if one.section or one.is_in_our_file]
    if len(ours) > 1 and told.provision:
        which = "all of them" if len(ours) == len(reasons) else f"{len(ours)} of them"
        yield from wrap(f"{which} at once: {told.provision}", INDENT)


def describe_reasons(findings: list[Finding], samples: Sequence[str] = ()) -> list[str]:
    """Return what falls short, now or after a boot: a sentence for each reason, the widest first.

    :param samples: Users who stand for everybody that the policy does not name.
    """
    reasons = [*find_reasons(findings, FAIL), *find_reasons(findings, LATER)]
    return [_describe_reason(one, findings, samples) for one in reasons]


def _describe_reason(reason: Reason, findings: list[Finding], samples: Sequence[str]) -> str:
    """Return who has what, and what is required."""
    places = [one.requirement.place for one in reason.findings]
    every = [one.requirement.place for one in findings]
    who = name_places(places, every, () if reason.is_of_one else samples)
    return f"{who}: {_describe(reason)}"


def _format_reason(reason: Reason, told: Told, done: set[str]) -> Iterator[str]:
    if reason.findings[0].owner:
        yield from wrap(describe_owner(reason.findings[0].owner), "     who  ", DEEPER)
    if not reason.causes:
        seen = list(dict.fromkeys(one.observation.how for one in reason.findings))
        told_of = f"not known; seen in {'; '.join(seen[:_MOST_TEXTS])}"
        yield from wrap(told_of, "     why  ", DEEPER)
        wanted = reason.findings[0].requirement
        if told.explain and wanted.item != START:
            shown = f"{told.explain} {shlex.quote(wanted.place)} {wanted.item}"
            yield from break_command(shown, "     see  ")
        yield from _format_heal(reason, told)
        return
    yield from _format_why(reason)
    if reason.is_in_our_file and told.provision:
        yield from wrap(f"{told.provision}, which writes that file anew", "     fix  ", DEEPER)
    elif reason.section and told.provision:
        yield from _format_own_fix(reason, told, done)
    else:
        yield from _format_fix(reason, "     fix  ")
        yield from _format_run(reason, told, done)
    yield from _format_heal(reason, told)


def _format_heal(reason: Reason, told: Told) -> Iterator[str]:
    """Yield what says whether that which runs can be raised without a restart."""
    wanted = [one.requirement for one in reason.findings]
    if not told.heal or not all(one.item in RLIMITS and one.minimum for one in wanted):
        return
    places = list(dict.fromkeys(one.place for one in wanted))
    found = [(word, re.fullmatch(kind, place)) for place in places for word, kind in _LIVING]
    words = [f"{word} {shlex.quote(match[1])}" for word, match in found if match]
    if len(words) == len(places) <= _MOST_TEXTS:
        for number, one in enumerate(words):
            start = DEEPER if number else "     live "
            yield from break_command(f"{told.heal} {one} --check", start)


def _format_why(reason: Reason) -> Iterator[str]:
    first = [one.causes[0] for one in reason.findings if one.causes]
    texts = list(dict.fromkeys(one.text for one in first))
    for number, text in enumerate(texts[:_MOST_TEXTS]):
        yield from wrap(text, DEEPER if number else "     why  ", DEEPER)
    if len(texts) > _MOST_TEXTS:
        yield f"{DEEPER}and {len(texts) - _MOST_TEXTS} more like that"
    for writer in dict.fromkeys(one.writer for one in first if one.writer not in ("", OURS)):
        yield from wrap(f"that file: {writer}", "     note ", DEEPER)


def _describe(reason: Reason) -> str:
    """Return what falls short, or will where it does not yet."""
    if not reason.findings[0].fails_later:
        return "; ".join(describe_failures(reason.findings))
    items = dict.fromkeys(one.requirement.item for one in reason.findings)
    return f"{', '.join(items)} {describe_late(reason.findings[0])}"


def _is_plain(remedy: Remedy) -> bool:
    return bool(remedy.lines) and bool(re.fullmatch(_APPEND, remedy.lines[0]))


def _list_new(reason: Reason, done: set[str]) -> list[str]:
    """Return the commands of a reason, as few as there may be; of edits, those not done before.

    What makes files count comes once, after the last edit that it is for.
    """
    lines = [line for cause in reason.causes for line in cause.remedy.lines]
    last = {line: number for number, line in enumerate(lines) if _is_activation(line)}
    new = [line for number, line in enumerate(lines) if last.get(line, number) == number]
    return _merge(line for line in dict.fromkeys(new) if line not in done)


def _is_activation(line: str) -> bool:
    """Tell whether a command makes what is stated count: it may be needed after every edit."""
    return bool(re.search(_ACTIVATES, line)) and not any(one in line for one in _EDITS)


def _find_then(reason: Reason) -> str:
    return next((one.remedy.then for one in reason.causes if one.remedy.then), "")


def _format_own_fix(reason: Reason, told: Told, done: set[str]) -> Iterator[str]:
    """Yield that ``provision`` does it, and below that the edit by hand."""
    then = _find_then(reason) or _AFTER.get(reason.section, "")
    ours = told.of_section.get(reason.section)
    if ours:
        yield from wrap(f"{ours}, then {then}" if then else ours, "     fix  ", DEEPER)
    else:
        command = f"     fix  {told.provision} --only {reason.section}"
        note = f"# then {then}" if then else ""  # It can be pasted as it stands.
        fits = len(f"{command} {note}") <= WIDTH
        yield from [f"{command} {note}".rstrip()] if fits else [command, f"{DEEPER}{note}"]
    shown = list(_format_commands(_list_new(reason, done), "     or   "))
    if not shown or len(shown) > _MOST_LINES or any(len(line) > WIDTH for line in shown):
        yield from _format_fix(reason, "     or   ", f", then {then}")
        return
    yield from shown
    _note_edits(reason, done)


def _format_commands(commands: Iterable[str], start: str) -> Iterator[str]:
    for number, command in enumerate(commands):
        yield from break_command(command, DEEPER if number else start)


def _format_run(reason: Reason, told: Told, done: set[str]) -> Iterator[str]:
    """Yield the commands; what is too wide to be read is left to who wants to copy it."""
    every = [line for cause in reason.causes for line in cause.remedy.lines]
    is_above = any(line in done for line in every)
    shown = list(_format_commands(_list_new(reason, done), DEEPER if is_above else "     run  "))
    if any(len(line) > WIDTH for line in shown):
        yield f"     run  # the commands that {told.more} shows"
        return
    yield from ["     run  # what stands above"] if is_above else []
    yield from shown
    if any(re.search(_ENDS, line) for line in every):
        yield "     note a restart ends what runs there"
    _note_edits(reason, done)


def _note_edits(reason: Reason, done: set[str]) -> None:
    """Remember which edits a report has shown."""
    every = (line for cause in reason.causes for line in cause.remedy.lines)
    done.update(line for line in every if not _is_activation(line))


def _format_fix(reason: Reason, start: str, above: str = "") -> Iterator[str]:
    """Yield what to do in words, each way once.

    :param above: What was said just above, where this is the other way; then also that which a
        command would say as plainly is said: to add a line to a file.
    """
    texts: dict[str, str] = {}
    for cause in reason.causes:
        if above or not _is_plain(cause.remedy):
            texts.setdefault(cause.remedy.text, cause.remedy.then)
    if not texts and _find_then(reason):
        texts["run the command below"] = _find_then(reason)
    for number, (text, then) in enumerate(texts.items()):
        told = f"{text}; then {then}" if then and not above else text.replace(above, "")
        yield from wrap(told, DEEPER if number else start, DEEPER)


def _merge(commands: Iterable[str]) -> list[str]:
    """Put lines that are added to one file, one after another, into one command."""
    merged: list[tuple[str, list[str]]] = []
    for command in commands:
        found = re.fullmatch(_APPEND, command)
        path = found[2] if found else ""
        if path and merged and merged[-1][0] == path:
            merged[-1][1].append(found[1] if found else "")
        else:
            merged.append((path, [found[1] if found else command]))
    return [_write(path, texts) for path, texts in merged]


def _write(path: str, texts: list[str]) -> str:
    if not path:
        return texts[0]
    if len(texts) == 1:
        return f"echo {texts[0]} >> {path}"
    return f"printf {shlex.quote('%s' + chr(92) + 'n')} {' '.join(texts)} >> {path}"
