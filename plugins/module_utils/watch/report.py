# SPDX-License-Identifier: BSD-2-Clause
"""What is told of a run that was watched: a line before its end, and a report after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.quote import one_line
from ..core.report import DEEPER, wrap
from ..core.values import NamedTuple
from ..why.ask import name_way
from ..why.reasons import REASONS
from ..why.verdict import SHOWN, Verdict
from .trends import End, Level, Trend
from .verdict import Blame, Seen, describe, find_signal, format_amount, has_failed

FORMAT, VERSION = "mlhost.limits/watch", 1
"""Of the file that ``watch --report`` writes; keys may be added without a new version."""

_MINUTE = 60.0
_MOST_TOLD, _MOST_KEPT, _MOST_POINTS = 4, 32, 60


def warn(trend: Trend, kind: str) -> str:
    """Return the line that tells of a limit before it is reached.

    :param kind: Where the run lives, as ``where_read`` has it.
    """
    level, left = trend.level, trend.left
    used, limit = (format_amount(level.code, one) for one in (level.used, level.limit))
    item = level.item or level.code
    told = f"{item}: {one_line(level.who)} has {used} of {limit} ({level.share:.0%})"
    if left is not None:
        told += f", full in {format_left(left)} at this rate"
    reason = REASONS[level.code]
    way = reason.way or name_way(level.item, kind) or _WAYS.get(level.item, reason.tell)
    return f"{told}; {way}"


_WAYS = {
    "vm.max_map_count": "sysctl -w vm.max_map_count=262144",
    "fs.file-max": "sysctl -w fs.file-max=2097152",
    "kernel.threads-max": "sysctl -w kernel.threads-max=262144",
    "kernel.pid_max": "sysctl -w kernel.pid_max=262144",
}


def format_left(seconds: float) -> str:
    """Write how long something takes, as far as anybody can know."""
    if seconds >= 1.5 * _MINUTE:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds:.0f} s" if seconds >= 1 else "less than 1 s"


class Watched(NamedTuple):
    """A run that has ended, as it is told: what was seen, the verdict on it, and whose it was.

    ``name`` is that of the program, ``when`` makes a time of the clock of what was seen a date.
    """

    seen: Seen
    verdict: Verdict
    blame: Blame
    name: str
    uid: int
    cgroup: str
    when: Callable[[float], str]

    def format_brief(self, fault: Sequence[str]) -> list[str]:
        """Return the report for people.

        :param fault: What ``why`` says of the verdict: the reason, the line at fault, the fix.
        """
        told = f"{self.name} {format_status(self.seen.status)} after {self._format_age()}"
        lines = wrap(one_line(told))
        if self.verdict.is_limit is not False:
            return [*lines, *fault, *self._list_growth()]
        head = "no limit was near"
        if self.verdict.sure == SHOWN:
            head = f"no limit: {self.verdict.reason.text}"
        elif self._list_near():
            head = "no limit is known to have ended it"
        elif not self.seen.looks:
            head = "unknown: it ended before anybody could look at it"
        lines += [*wrap(head), *wrap(one_line(self.blame.note), "     host ", DEEPER)]
        return [*lines, *self._list_growth()]

    def _format_age(self) -> str:
        return format_left(max(self.seen.end.at - self.seen.began, 0.0))

    def _list_near(self) -> list[Trend]:
        return [one for one in self.seen.trends if one.peak.share >= 0.8][:_MOST_TOLD]

    def _list_growth(self) -> list[str]:
        lines = []
        for trend in self._list_near():
            since = trend.grew_since
            grew = f", it grew since {self.when(since)}" if since is not None else ""
            lines += wrap(one_line(f"{describe(trend)}{grew}"), "     seen ", DEEPER)
        for rise in [*self.seen.rises][-_MOST_TOLD:]:
            told = f"{self.when(rise.at)} {rise.path} counted {rise.by}"
            lines += wrap(one_line(told), "     seen ", DEEPER)
        return lines

    def as_dict(self) -> dict[str, object]:
        """Return the report as plain data, for JSON."""
        seen, verdict = self.seen, self.verdict
        ended = [self._tell_end(one) for one in seen.ends if has_failed(one.status)]
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "uid": self.uid,
            "cgroup": self.cgroup,
            "began": self.when(seen.began),
            "end": self._tell_end(seen.end),
            "ended": ended[-_MOST_KEPT:],
            "reason": verdict.reason.code if has_failed(seen.status) else "",
            "others": [one.code for one in verdict.others],
            "item": verdict.reason.item,
            "is_limit": verdict.is_limit,
            "sure": verdict.sure,
            "host": list(verdict.notes),
            "group": self.blame.group,
            "looks": seen.looks,
            "killed_for_memory": seen.kills,
            "events": [
                {"at": self.when(one.at), "file": one.path, "by": one.by}
                for one in [*seen.rises][-_MOST_KEPT:]
            ],
            "limits": [self._tell_trend(one) for one in seen.trends[:_MOST_KEPT]],
        }

    def _tell_end(self, end: End) -> dict[str, object]:
        number = find_signal(end.status)
        return {
            "at": self.when(end.at),
            "pid": end.pid,
            "name": end.comm,
            "status": None if end.status is None or number else end.status >> 8,
            "signal": number or None,
        }

    def _tell_trend(self, trend: Trend) -> dict[str, object]:
        level: Level = trend.peak
        since, left = trend.grew_since, trend.left
        return {
            "reason": level.code,
            "item": level.item,
            "whose": level.who,
            "limit": level.limit,
            "most": level.used,
            "last": trend.level.used,
            "percent": round(level.share * 100, 1),
            "grew_since": None if since is None else self.when(since),
            "seconds_left": None if left is None else round(left, 1),
            "points": [
                [round(at - self.seen.end.at, 2), used]
                for at, used in [*trend.points][-_MOST_POINTS:]
            ],
        }


def format_status(status: int) -> str:
    """Write how something ended, by its status of wait(2)."""
    number = find_signal(status)
    return f"was ended by signal {number}" if number else f"ended with status {status >> 8}"
