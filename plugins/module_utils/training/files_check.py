# SPDX-License-Identifier: BSD-2-Clause
"""Judge the files of a run's cache: which are damaged, which cannot be told."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NoReturn

from ..core.cause import Cause
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from ..core.folder_states import ABSENT, DIRECTORY
from ..core.policy import TIME_LIMIT
from ..core.values import NamedTuple
from .cache_check import look_there, looks_as_runner
from .cache_look_read import load_archives
from .cache_read import LISTED, Checked, LateError, Survey, survey_files
from .file_verdict import CLOSED, CORRUPT, LEFTOVER, QUARANTINE, SKIPPED, SOUND, UNSEEN, WRITTEN
from .folder_measure import find_actor, run_there
from .folder_rules import blame, place_of
from .open_files_read import find_writers_below
from .policy import Training

_SHOWN = 5
_MOVED = 20


class CacheFiles(NamedTuple):
    """What was seen of a cache: the files that are not sound, each with the reason.

    ``number`` is how many were looked at; the lists may hold fewer files than the counts say.
    ``closed`` may not be read by who looked; ``reader`` is that user, where it is who will run.
    ``skipped`` are of no format that is known. ``reason`` says why the directory was not looked at,
    ``unfinished`` why not all of it was. ``written`` are those that somebody writes just now, each
    with the pid, or 0 where nobody is seen. ``actor`` is as whom files may be moved: empty for
    whoever looks, ``None`` where nobody safely can.
    """

    path: str
    number: int
    corrupt: Sequence[tuple[str, str]] = ()
    corrupt_count: int = 0
    unknown: Sequence[tuple[str, str]] = ()
    unknown_count: int = 0
    closed: Sequence[tuple[str, str]] = ()
    closed_count: int = 0
    skipped: Sequence[tuple[str, str]] = ()
    skipped_count: int = 0
    leftover: Sequence[tuple[str, str]] = ()
    leftover_count: int = 0
    written: Sequence[tuple[str, int]] = ()
    written_count: int = 0
    deep: bool = False
    reason: str = ""
    unfinished: str = ""
    actor: str | None = ""
    reader: str = ""


def judge_files(files: CacheFiles) -> Iterator[Finding]:
    """Yield whether files are damaged, how many cannot be told, and what nobody will finish."""
    wanted = Requirement(place_of(files.path), "damaged files", "value", maximum=0)
    what = "all bytes" if files.deep else "the first and last bytes"
    how = f"{what} of {files.number} files"
    if files.reason:
        yield Finding(UNKNOWN, wanted, Observation(None, how, files.reason))
        return
    if files.corrupt_count:
        seen = Observation(_tell_number(files), how)
        yield Finding(FAIL, wanted, seen, (_blame(files),))
    elif not files.unfinished and _has_seen_any(files):
        yield Finding(PASS, wanted, Observation(_tell_number(files), how))
    if files.closed_count and files.reader:
        yield _judge_closed(files, how)
    for reason in _find_doubts(files):
        yield Finding(UNKNOWN, wanted, Observation(None, how, reason))
    if files.leftover_count:
        left = Requirement(place_of(files.path), "unfinished files", "value")
        names = _name(files.leftover, files.leftover_count)
        yield Finding(PASS, left, Observation(f"{files.leftover_count} ({names})", how))


def _has_seen_any(files: CacheFiles) -> bool:
    """Tell whether a file was seen to be sound, or there is none."""
    told = files.unknown_count + files.closed_count + files.written_count + files.leftover_count
    return files.number > told or not (told - files.leftover_count + files.skipped_count)


def _tell_number(files: CacheFiles) -> int | str:
    """Return how many are damaged, and how many were not looked at and why."""
    if not files.skipped_count:
        return files.corrupt_count
    return f"{files.corrupt_count}. {_tell_skipped(files)}"


def _tell_skipped(files: CacheFiles) -> str:
    reasons = " or ".join(sorted({reason for _name, reason in files.skipped})[:3])
    many = "1 file" if files.skipped_count == 1 else f"{files.skipped_count} files"
    return f"Not looked at: {many}, {reasons} ({_name(files.skipped, files.skipped_count)})"


def _judge_closed(files: CacheFiles, how: str) -> Finding:
    """Say that who will run may not read all of the cache."""
    wanted = Requirement(place_of(files.path), "closed files", "value", maximum=0)
    told = "; ".join(f"{name} {reason}" for name, reason in files.closed[:_SHOWN])
    more = f"; and {files.closed_count - _SHOWN} more" if files.closed_count > _SHOWN else ""
    fix = f"let {files.reader} read them, or name a directory of {files.reader}'s own"
    cause = blame("folder-closed", f"{told}{more}", fix)
    return Finding(FAIL, wanted, Observation(files.closed_count, how), (cause,))


def _find_doubts(files: CacheFiles) -> Iterator[str]:
    """Yield why nothing can be said of some files."""
    if files.unfinished:
        yield files.unfinished
    unseen = [*files.unknown, *(() if files.reader else files.closed)]
    number = files.unknown_count + (0 if files.reader else files.closed_count)
    if number:
        reasons = " or ".join(sorted({reason for _name, reason in unseen})[:2])
        many = "1 file:" if number == 1 else f"{number} files: each"
        yield f"Not looked at: {many} {reasons} ({_name(unseen, number)})"
    if files.written_count:
        shown = files.written[:_SHOWN]
        names = ", ".join(f"{name} by pid {pid}" if pid else name for name, pid in shown)
        one = files.written_count == 1
        many = "1 file is" if one else f"{files.written_count} files are"
        yield f"{many} being written now: {names}"
    if files.skipped_count and not _has_seen_any(files) and not files.corrupt_count:
        yield _tell_skipped(files)


def _name(files: Sequence[tuple[str, str]], count: int) -> str:
    shown = [name for name, _reason in files[:_SHOWN]]
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return f"{', '.join(shown)}{more}"


def _blame(files: CacheFiles) -> Cause:
    """Name the damaged files; the commands move them aside, and never remove one."""
    told = "; ".join(f"{name} {reason}" for name, reason in files.corrupt[:_SHOWN])
    more = f"; and {files.corrupt_count - _SHOWN} more" if files.corrupt_count > _SHOWN else ""
    folder = f"{files.path.rstrip('/')}/{QUARANTINE}"
    moves: list[tuple[str, ...]] = [("mkdir", "-p", "-m", "0700", folder)]
    moves += [
        ("mv", "-nT", f"{files.path.rstrip('/')}/{name}", f"{folder}/{name.replace('/', '__')}")
        for name, _reason in files.corrupt
        if name.isprintable()
    ][:_MOVED]
    fix = "move them out of the way and let the run make them again"
    if files.corrupt_count > _MOVED:
        fix = f"{fix}; mlhost.limits.workspace with quarantine moves all {files.corrupt_count}"
    return blame("cache-file-corrupt", f"{told}{more}", fix, *moves, actor=files.actor)


_EMPTY = "\r\x1b[K"
"""What a terminal empties its line on."""

_SHARE = 0.7  # So that what else is asked of a run is told, however long a user's files take.


def check_cache_files(training: Training, time_limit: float = TIME_LIMIT) -> Iterator[Finding]:
    """Yield what is wrong with the files below the cache directory.

    :param time_limit: That of the whole check, in seconds: a user's files may take a share of it.
    """
    path, deep = training.cache_dir, training.deep
    if path is None:
        return
    facts = look_there(path, training, proofs=())
    if isinstance(facts, Finding):
        yield facts
        return
    if facts.state == ABSENT and training.makes_cache:
        return  # Nothing is in it, and whether it can be made the other check says.
    if facts.state != DIRECTORY:  # A mount that does not answer would not let go of this process.
        yield from judge_files(CacheFiles(path, 0, deep=deep, reason=facts.reason))
        return
    tell = make_progress(path)
    try:
        survey = survey_there(path, facts.uid, deep, tell, time_limit * _SHARE)
    finally:
        if tell is not None:  # What is said next begins on an empty line.
            sys.stderr.write(_EMPTY)
            sys.stderr.flush()
    reader = facts.user if looks_as_runner(training) else ""
    seen = _describe(path, survey, facts.real_path, reader)
    moved = [f"{path}/{name}" for name in ("entry", *(name for name, _why in seen.corrupt))]
    yield from judge_files(seen._replace(deep=deep, actor=find_actor(facts, moved)))


def _describe(path: str, survey: Survey, real_path: str, reader: str) -> CacheFiles:
    """Return what was seen; a file that is being written now is not a damaged one."""
    writers = find_writers_below(real_path) if survey.corrupt or survey.lists[WRITTEN] else {}
    corrupt = [(one.path, one.reason) for one in survey.corrupt if one.path not in writers]
    written = [one.path for one in survey.corrupt if one.path in writers]
    counts = survey.counts
    told = {
        status: [(one.path, one.reason) for one in survey.lists[status]]
        for status in (UNSEEN, CLOSED, SKIPPED, LEFTOVER)
    }
    names = [*written, *(one.path for one in survey.lists[WRITTEN])]
    return CacheFiles(
        path,
        survey.number,
        corrupt,
        counts[CORRUPT] - len(written),
        told[UNSEEN],
        counts[UNSEEN],
        told[CLOSED],
        counts[CLOSED],
        told[SKIPPED],
        counts[SKIPPED],
        told[LEFTOVER],
        counts[LEFTOVER],
        [(name, writers.get(name, 0)) for name in names],
        counts[WRITTEN] + len(written),
        reason=survey.reason,
        unfinished=survey.unfinished,
        reader=reader,
    )


def make_progress(path: str) -> Callable[[int], None] | None:
    """Return what shows on a terminal how far a look has come; nothing where there is none."""
    if not sys.stderr.isatty():
        return None
    started = time.monotonic()
    width = os.get_terminal_size(sys.stderr.fileno()).columns - 1

    def tell(number: int) -> None:
        pace = number / max(time.monotonic() - started, 0.001)
        line = f"{path}: {number} files, {pace:.0f} per second; Ctrl-C ends it"
        sys.stderr.write(f"\r{line[:width]}{_EMPTY[1:]}")
        sys.stderr.flush()

    return tell


SURVEY_LIMIT, DEEP_LIMIT = 60.0, 600.0
"""Seconds that a look by a child may take, of the ends of each file and of all that is in it."""

_GRACE = 5.0
_MOST = {CORRUPT: 100, **dict.fromkeys(LISTED[1:], 20)}
_MOST_BYTES = 20_000  # Of the names in each list, so that an answer has an end.


def survey_there(
    path: str,
    uid: int,
    deep: bool = False,
    tell: Callable[[int], None] | None = None,
    most: float = DEEP_LIMIT,
) -> Survey:
    """Look at all files below a directory as a user; for root, as whose the directory is.

    Whoever looks at what is their own needs no child, and is told how far the look has come.

    :param most: How many seconds a child may take, if that is less than it would.
    """
    if uid == os.geteuid():
        return survey_files(path, deep, tell)
    seconds = min(most, DEEP_LIMIT if deep else SURVEY_LIMIT)
    if deep:
        load_archives()
    report = run_there(uid, path, partial(_survey, path, deep, seconds), seconds + _GRACE)
    if report.problem:
        return _read_survey({"reason": f"{path}: {report.problem}"})
    return _read_survey(report.value)


def _survey(path: str, deep: bool, seconds: float) -> dict[str, object]:
    """Look for so long, and return what was seen as JSON can carry it. Runs in a child."""

    def stop(_number: int, _frame: object) -> NoReturn:
        raise LateError(f"in {seconds:g} s")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    survey = survey_files(path, deep)
    signal.setitimer(signal.ITIMER_REAL, 0)
    lists = {status: _shorten(survey.lists[status], _MOST[status]) for status in LISTED}
    return {**survey._asdict(), "lists": lists}


def _shorten(files: list[Checked], most: int) -> list[Checked]:
    """Return the first of these files, as many as an answer may hold."""
    kept, size = [], 0
    for one in islice(files, most):
        size += len(one.path) + len(one.reason)
        if size > _MOST_BYTES:
            break
        kept.append(one)
    return kept


def _read_survey(raw: dict[str, Any]) -> Survey:
    """Return what a child answered."""
    counts, lists = raw.get("counts", {}), raw.get("lists", {})
    return Survey(
        {status: int(counts.get(status, 0)) for status in (SOUND, *LISTED)},
        {
            status: [
                Checked(str(name), str(told), str(why))
                for name, told, why, *_more in lists.get(status, ())
            ]
            for status in LISTED
        },
        str(raw.get("reason", "")),
        str(raw.get("unfinished", "")),
    )
