# SPDX-License-Identifier: BSD-2-Clause
"""Tell people and programs what a run died of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.cause import Remedy
from ..core.quote import one_line
from ..core.report import DEEPER, break_command, wrap
from ..core.values import ITEMS, NamedTuple, format_quantity
from .reason import Reason
from .verdict import MINIMUM, REQUEST, SHOWN, Verdict

FORMAT, VERSION = "mlhost.limits/why", 1
"""Of what ``why --json`` prints; keys may be added without a new version."""

_LONGEST = 300
_HEADS = {True: "limit", False: "no limit", None: "perhaps a limit"}
_MOST_NOTES = 3


class Answer(NamedTuple):
    """What is told of one run.

    ``place`` is where it lived, as check names places. ``fault`` are the lines of check there, and
    ``findings`` the same as data. ``unseen`` says what root would see. ``note`` says what else
    somebody should know of how it was judged.
    ``log`` is the name of the log, where several were given; ``is_cut`` tells that its beginning
    was not read.
    """

    verdict: Verdict
    place: str = ""
    fault: Sequence[str] = ()
    findings: Sequence[dict[str, object]] = ()
    unseen: Sequence[str] = ()
    note: Sequence[str] = ()
    log: str = ""
    is_cut: bool = False

    @property
    def lines(self) -> list[str]:
        """The answer for people, at most 80 columns wide."""
        verdict = self.verdict
        place = f" ({self.place})" if self.place and verdict.reason.is_limit else ""
        lines = wrap(f"{_HEADS[verdict.is_limit]}: {verdict.reason.text}{place}")
        lines += self._tell("sure", verdict.sure)
        if verdict.line:
            said = one_line(_cut_around(verdict.line, verdict.at))
            lines += self._tell("said", f"{self._count()}: {said}")
        for note in verdict.notes[:_MOST_NOTES]:
            lines += self._tell("host" if verdict.sure == SHOWN else "note", one_line(note))
        for other in verdict.others:
            lines += self._tell("or", _tell_other(other))
        if verdict.others:
            lines += self._tell("note", f"told from these: {verdict.reason.tell}")
        return [*lines, *self._list_ways()]

    def _count(self) -> str:
        number = f"line {self.verdict.number}"
        of_log = f" of {one_line(self.log)}" if self.log else ""
        return f"{number}{of_log}{', from where it was read' if self.is_cut else ''}"

    def _list_ways(self) -> Iterator[str]:
        verdict = self.verdict
        if verdict.needed:
            yield from self._tell("need", _tell_needed(*verdict.needed))
        yield from self.fault
        if not self.fault and verdict.reason.way:
            yield from self._tell("fix", verdict.reason.way)
        if verdict.earlier:
            earlier = one_line(verdict.earlier)[:_LONGEST]
            yield from self._tell("note", f"above that it said: {earlier}")
        for note in self.note:
            yield from self._tell("note", note)
        if self.unseen:
            yield from self._tell("note", f"root would see {'; '.join(self.unseen)}")

    @staticmethod
    def _tell(head: str, text: str) -> list[str]:
        return wrap(text, f"     {head:<4} ", DEEPER)

    def as_dict(self) -> dict[str, object]:
        """Return the answer as plain data, for JSON."""
        verdict = self.verdict
        needed = verdict.needed
        return {
            "format": FORMAT,
            "version": VERSION,
            "reason": verdict.reason.code,
            "is_limit": verdict.is_limit,
            "sure": verdict.sure,
            "text": verdict.reason.text,
            "item": verdict.reason.item,
            "fix": verdict.reason.way,
            "line": verdict.line,
            "number": verdict.number,
            "log": self.log,
            "is_cut": self.is_cut,
            "others": [_describe(one) for one in verdict.others],
            "host": list(verdict.notes),
            "needed": {"item": needed[0], "value": needed[1]} if needed else None,
            "earlier": verdict.earlier,
            "place": self.place,
            "findings": list(self.findings),
            "unseen": list(self.unseen),
            "notes": list(self.note),
        }


def format_remedy(remedy: Remedy) -> list[str]:
    """Return what to do, and the commands that do it."""
    lines = wrap(remedy.text, "     fix  ", DEEPER)
    for number, command in enumerate(remedy.lines):
        lines += break_command(command, DEEPER if number else "     run  ")
    return lines


def _cut_around(line: str, at: int) -> str:
    """Return the part of a long line that tells of the failure."""
    if len(line) <= _LONGEST:
        return line
    start = min(max(at - _LONGEST // 3, 0), len(line) - _LONGEST)
    end = start + _LONGEST
    return f"{'... ' if start else ''}{line[start:end]}{' ...' if end < len(line) else ''}"


def _describe(reason: Reason) -> dict[str, object]:
    return {
        "reason": reason.code,
        "is_limit": reason.is_limit,
        "text": reason.text,
        "tell": reason.tell,
    }


def _tell_other(reason: Reason) -> str:
    how = f"; then {reason.tell}" if reason.tell else ""
    return f"{'' if reason.is_limit else 'no limit: '}{reason.text}{how}"


def _tell_needed(item: str, value: int) -> str:
    if item == REQUEST:
        return f"it asked for {format_quantity(value, 'bytes')} at once"
    if item == MINIMUM:
        return f"at least {format_quantity(value, 'bytes')}, and more while it goes on"
    unit = ITEMS[item].unit if item in ITEMS else ""
    return f"{item} of {format_quantity(value, unit)} would have been enough"
