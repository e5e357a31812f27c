# SPDX-License-Identifier: BSD-2-Clause
"""Judge what a run ended of, by how it ended and by what was seen of it until then.

A limit is blamed where a counter of the kernel, its log or a level shows that it was reached just
before a process ended in the way that it ends one; what was only near is no more than possible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..core.values import UNLIMITED, NamedTuple
from ..training.loader import format_size
from ..why.kills import Kill, Line, find_kills
from ..why.no_limits import BY_HAND
from ..why.reasons import (
    CGROUP,
    FILE_MAX,
    HOST,
    MAPPINGS,
    MEMLOCK,
    NOFILE,
    NPROC,
    PIDS,
    REASONS,
    SHM,
    SPACE,
    THREADS,
)
from ..why.verdict import POSSIBLE, SHOWN, Verdict
from .trends import COUNTED, CPU, FSIZE, STACK, TOLD, End, Rise, Trend

ILL, ABRT, BUS, FPE, KILL, SEGV, XCPU, XFSZ = 4, 6, 7, 8, 9, 11, 24, 25
"""Signals by their numbers, which are the same on x86, ARM and POWER (signal(7))."""

EXCEPTION, CRASH = "exception", "crash"
_PROMPT, _SEEN, _LATEST = 10.0, 3.0, 60.0
"""Seconds that a process lives on at most after it reached its limit; after less was seen; and
since the last look, where a busy host has nobody look more often: what was full then may be still.
"""

_COUNTED, _EARLIER, _EARLIEST = 5.0, 15.0, 60.0
"""Seconds between what the kernel counts, or an error that ended another process, and the end; the
same for a process that was killed; and for what may have ended the run at all."""

_LATE_MS = 400
"""Milliseconds of processor time that are taken after the last look, at most."""

_OWN = (NOFILE, MAPPINGS, MEMLOCK, SPACE)
_ALL = (NPROC, SHM, FILE_MAX, THREADS)
"""Limits of a process, and of what it shares with others, at which a call returns an error."""

_CRASHES = (SEGV, BUS, ILL, FPE, ABRT)


class Seen(NamedTuple):
    """What was seen of a run. Times are of one clock.

    ``end`` is that of the command itself, ``ends`` are the others', ``kills`` how many processes
    the kernel has killed for memory meanwhile (``None`` if unknown), ``log`` its own log as far as
    it may be read, ``looks`` how often anybody looked. In the cgroups of ``shared`` others lived.
    ``is_alone`` tells that what its processes share with others was looked at for it alone.
    """

    began: float
    end: End
    ends: Sequence[End] = ()
    rises: Sequence[Rise] = ()
    trends: Sequence[Trend] = ()
    kills: int | None = None
    log: Sequence[Line] | None = None
    looks: int = 0
    shared: Collection[str] = ()
    is_alone: bool = True

    @property
    def status(self) -> int:
        return self.end.status or 0


class Blame(NamedTuple):
    """What ended one process, and what shows it. ``group`` is the cgroup whose limit it was."""

    code: str
    sure: str
    note: str
    item: str = ""
    group: str = ""


def find_signal(status: int | None) -> int:
    """Return the signal that ended a process, by its status of wait(2); 0 for none."""
    return (status or 0) & 0x7F


def has_failed(status: int | None) -> bool:
    return bool(status)


def judge(seen: Seen) -> tuple[Verdict, Blame]:
    """Return what ended a run: the first end of it that a limit shows, or its own."""
    others = [
        one
        for one in seen.ends
        if has_failed(one.status) and one.at >= seen.end.at - _EARLIEST and one.pid != seen.end.pid
    ]
    blames = [*(_explain_other(one, seen) for one in others), _explain(seen.end, seen)]
    shown = [one for one in blames if one.sure == SHOWN and REASONS[one.code].is_limit]
    if shown:
        return _conclude(shown[0]), shown[0]
    possible = [one for one in blames if REASONS[one.code].is_limit]
    last = blames[-1]
    if possible:
        codes = dict.fromkeys([*(one.code for one in possible), _name_own(seen.end)])
        reasons = tuple(REASONS[code] for code in codes)
        notes = tuple(one.note for one in possible)
        return Verdict(reasons[0], POSSIBLE, "", 0, reasons[1:], notes), possible[0]
    return _conclude(last), last


def _explain_other(end: End, seen: Seen) -> Blame:
    """Return what ended another process of the run, which may have gone on without it."""
    blame, ago = _explain(end, seen), seen.end.at - end.at
    if ago <= (_EARLIER if find_signal(end.status) == KILL else _COUNTED):
        return blame
    return blame._replace(sure=POSSIBLE, note=f"{blame.note}, {ago:.0f} s before the run did")


def _conclude(blame: Blame) -> Verdict:
    reason = REASONS[blame.code]
    if blame.item:
        reason = reason._replace(item=blame.item)
    return Verdict(reason, blame.sure, "", 0, (), (blame.note,))


def _name_own(end: End) -> str:
    """Return what an end is where no limit is at fault."""
    number = find_signal(end.status)
    return CRASH if number in _CRASHES else BY_HAND if number else EXCEPTION


def _explain(end: End, seen: Seen) -> Blame:
    """Return what ended a process."""
    number = find_signal(end.status)
    if number == KILL:
        found = _explain_kill(end, seen)
    elif number == XCPU:
        found = _find_time(end, seen)
    elif number == XFSZ and end.fsize != UNLIMITED:
        size = format_size(end.fsize)
        note = f"{_name(end)} got SIGXFSZ, and may write files of {size}"
        found = Blame(FSIZE, SHOWN, note)
    elif number == BUS:
        found = _find_level(end, seen, (SHM,))
    elif number == SEGV:
        found = _find_level(end, seen, (STACK,))
    elif number in (0, ABRT):
        found = _explain_error(end, seen)
    else:
        found = None
    return found or _excuse(end, seen)


def _name(end: End) -> str:
    return f"process {end.pid} ({end.comm})"


def _excuse(end: End, seen: Seen) -> Blame:
    """Return that no limit ended a process, as far as anybody looked."""
    code, number = _name_own(end), find_signal(end.status)
    how = f"was ended by signal {number}" if number else f"ended with {(end.status or 0) >> 8}"
    if number == KILL and seen.kills == 0:
        note = (
            f"{_name(end)} was killed, and the kernel has killed nobody for memory since it began"
        )
        return Blame(code, SHOWN, note)
    near = next((one for one in seen.trends if one.peak.share >= TOLD), None)
    told = f"; {describe(near)} was the nearest limit" if near else ", and no limit was near"
    told = told if seen.looks else "; it was too short to be looked at"
    is_shown = number not in (0, KILL) and not near and seen.looks
    return Blame(code, SHOWN if is_shown else POSSIBLE, f"{_name(end)} {how}{told}")


def _explain_kill(end: End, seen: Seen) -> Blame | None:
    """Return whether the kernel killed a process: for memory, or for its processor time."""
    if seen.kills != 0:
        found = [one for one in find_kills(seen.log or ()) if one.pid == end.pid]
        if found:
            return _blame_kernel(end, found[-1])
        if seen.log is None:
            return _blame_counter(end, seen)
    cpu = [one for one in seen.trends if one.level.code == CPU and one.level.pid == end.pid]
    if cpu and cpu[0].level.used >= end.cpu * 1000 - _LATE_MS:
        note = f"{_name(end)} took its {end.cpu} s of processor time, the hard limit"
        return Blame(CPU, SHOWN, note)
    return None


def _blame_kernel(end: End, kill: Kill) -> Blame:
    code = CGROUP if kill.constraint == "CONSTRAINT_MEMCG" else HOST
    where = f" at the limit of {kill.group}" if kill.group else ""
    return Blame(
        code, SHOWN, f"kernel log: {_name(end)} was killed for memory{where}", "", kill.group
    )


def _blame_counter(end: End, seen: Seen) -> Blame | None:
    """Return what counters tell of a kill where the kernel's log may not be read: they name nobody,
    and a cgroup that others live in counts for them too."""
    for rise in seen.rises:
        folder, _slash, name = rise.path.rpartition("/")
        is_then = folder in end.folders and abs(rise.at - end.at) <= _SEEN
        if is_then and not name.startswith("pids.events"):
            full = [one for one in _list_of(seen, CGROUP) if one.level.who in end.folders]
            is_full = folder not in seen.shared and any(one.peak.share >= TOLD for one in full)
            note = f"{rise.path}: {rise.by} killed for memory when {_name(end)} was killed"
            return Blame(CGROUP, SHOWN if is_full else POSSIBLE, note, "", folder)
    return (
        Blame(HOST, POSSIBLE, "the kernel killed somebody for memory while it ran")
        if seen.kills
        else None
    )


def _find_time(end: End, seen: Seen) -> Blame | None:
    """Return the limit of processor time, whose signal a process got."""
    for trend in _list_of(seen, CPU):
        if trend.level.pid == end.pid and trend.peak.share >= TOLD:
            note = f"{_name(end)} got SIGXCPU; {describe(trend)} when it was last seen"
            return Blame(CPU, SHOWN, note, "cpu")
    return None


def _list_of(seen: Seen, code: str) -> list[Trend]:
    return [one for one in seen.trends if one.level.code == code]


def _explain_error(end: End, seen: Seen) -> Blame | None:
    """Return the limit at which a call returned an error that ended a process."""
    for rise in reversed(seen.rises):
        folder, _slash, name = rise.path.rpartition("/")
        is_near = end.at - _COUNTED <= rise.at <= end.at + _SEEN
        if name.startswith("pids.events") and folder in end.folders and is_near:
            note = f"{rise.path}: {rise.by} tasks were refused just before {_name(end)} ended"
            return Blame(PIDS, SHOWN, note, "", folder)
    return _find_level(end, seen, (*_OWN, *_ALL))


def _find_level(end: End, seen: Seen, codes: Sequence[str]) -> Blame | None:
    """Return the limit that a process had reached when it ended; perhaps, one that it was near."""
    near = []
    for trend in _list_levels(end, seen, codes):
        level = trend.peak
        since = end.at - trend.full_seen
        if trend.full_at is not None and since <= (_LATEST if _is_still_full(trend) else _SEEN):
            is_prompt = end.at - trend.full_at <= _PROMPT
            is_own = seen.is_alone or level.pid == end.pid or find_signal(end.status) == BUS
            sure = SHOWN if is_prompt and is_own else POSSIBLE
            lived = "" if is_prompt else ", and it lived on for a while"
            blame = Blame(level.code, sure, f"{describe(trend)} before it ended{lived}", level.item)
            if sure == SHOWN:
                return blame
            near.append(blame)
        elif level.share >= TOLD and trend.grew_since is not None and _is_late(trend, end):
            note = f"{describe(trend)}, and it grew"
            near.append(Blame(level.code, POSSIBLE, note, level.item))
    return near[0] if near else None


def _is_late(trend: Trend, end: End) -> bool:
    """Tell whether most was taken about when a process ended."""
    return end.at - trend.peak_at <= _PROMPT


def _list_levels(end: End, seen: Seen, codes: Sequence[str]) -> Iterator[Trend]:
    for trend in seen.trends:
        level = trend.level
        is_own = level.pid == end.pid or level.code == SHM or not level.pid
        recent = _LATEST if _is_still_full(trend) else _PROMPT
        if level.code in codes and is_own and end.at - trend.seen_at <= recent:
            yield trend


def _is_still_full(trend: Trend) -> bool:
    """Tell whether a limit was reached when anybody looked last."""
    return trend.full_at is not None and trend.full_seen >= trend.seen_at


def describe(trend: Trend) -> str:
    """Return how much of a limit was taken at most, in words."""
    level = trend.peak
    used, limit = (format_amount(level.code, one) for one in (level.used, level.limit))
    return f"{level.who} had {used} of {limit} ({level.item or level.code}, {level.share:.0%})"


def format_amount(code: str, number: int) -> str:
    """Write how much of a limit: things, seconds or bytes."""
    if code in COUNTED:
        return str(number)
    return f"{number / 1000:.1f} s" if code == CPU else format_size(number)
