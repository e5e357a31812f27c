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
from ..core.folder_states import DIRECTORY
from ..core.policy import TIME_LIMIT
from ..core.values import NamedTuple
from .cache_check import look_there
from .cache_read import Checked, LateError, Survey, load_archives, survey_files
from .file_verdict import CORRUPT, LEFTOVER, QUARANTINE, SOUND, UNSEEN
from .folder_measure import find_actor, run_there
from .folder_rules import blame, place_of
from .open_files_read import find_writers_below
from .policy import Training

_SHOWN = 5
_MOVED = 20


class CacheFiles(NamedTuple):
    """What was seen of a cache: the files that are not sound, each with the reason.

    ``number`` is how many were looked at; the lists may hold fewer files than the counts say.
    ``reason`` says why the directory was not looked at, ``unfinished`` why not all of it was.
    ``written`` are those that somebody writes just now, each with the pid. ``actor`` is as whom
    files may be moved: empty for whoever looks, ``None`` where nobody safely can.
    """

    path: str
    number: int
    corrupt: Sequence[tuple[str, str]] = ()
    corrupt_count: int = 0
    unknown: Sequence[tuple[str, str]] = ()
    unknown_count: int = 0
    leftover: Sequence[tuple[str, str]] = ()
    leftover_count: int = 0
    written: Sequence[tuple[str, int]] = ()
    deep: bool = False
    reason: str = ""
    unfinished: str = ""
    actor: str | None = ""


def judge_files(files: CacheFiles) -> Iterator[Finding]:
    """Yield whether files are damaged, how many cannot be told, and what nobody will finish."""
    wanted = Requirement(place_of(files.path), "damaged files", "value", maximum=0)
    what = "all bytes" if files.deep else "the first and last bytes"
    how = f"{what} of {files.number} files"
    if files.reason:
        yield Finding(UNKNOWN, wanted, Observation(None, how, files.reason))
        return
    if files.corrupt_count:
        seen = Observation(files.corrupt_count, how)
        yield Finding(FAIL, wanted, seen, (_blame(files),))
    elif not files.unfinished:
        yield Finding(PASS, wanted, Observation(0, how))
    for reason in _find_doubts(files):
        yield Finding(UNKNOWN, wanted, Observation(None, how, reason))
    if files.leftover_count:
        left = Requirement(place_of(files.path), "unfinished files", "value")
        names = _name(files.leftover, files.leftover_count)
        yield Finding(PASS, left, Observation(f"{files.leftover_count} ({names})", how))


def _find_doubts(files: CacheFiles) -> Iterator[str]:
    if files.unfinished:
        yield files.unfinished
    if files.unknown_count:
        reasons = " or ".join(sorted({reason for _name, reason in files.unknown})[:2])
        names = _name(files.unknown, files.unknown_count)
        many = "1 file:" if files.unknown_count == 1 else f"{files.unknown_count} files: each"
        yield f"{many} {reasons} ({names})"
    if files.written:
        names = ", ".join(f"{name} by pid {pid}" for name, pid in files.written[:_SHOWN])
        one = len(files.written) == 1
        many = "1 file is" if one else f"{len(files.written)} files are"
        yield f"{many} being written now: {names}"


def _name(files: Sequence[tuple[str, str]], count: int) -> str:
    names = ", ".join(name for name, _reason in files[:_SHOWN])
    return f"{names} and {count - _SHOWN} more" if count > _SHOWN else names


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
    seen = _describe(path, survey, facts.real_path, deep)
    moved = [f"{path}/{name}" for name in ("entry", *(name for name, _why in seen.corrupt))]
    yield from judge_files(seen._replace(actor=find_actor(facts, moved)))


def _describe(path: str, survey: Survey, real_path: str, deep: bool) -> CacheFiles:
    """Return what was seen; a file that is being written now is no damaged one."""
    writers = find_writers_below(real_path) if survey.corrupt else {}
    corrupt = [(one.path, one.reason) for one in survey.corrupt if one.path not in writers]
    written = [(one.path, writers[one.path]) for one in survey.corrupt if one.path in writers]
    return CacheFiles(
        path,
        survey.number,
        corrupt,
        survey.counts["corrupt"] - len(written),
        [(one.path, one.reason) for one in survey.unknown],
        survey.counts["unknown"],
        [(one.path, one.reason) for one in survey.leftover],
        survey.counts["leftover"],
        written,
        deep,
        survey.reason,
        survey.unfinished,
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
_FIELDS = {CORRUPT: "corrupt", UNSEEN: "unknown", LEFTOVER: "leftover"}
_MOST = {CORRUPT: 100, UNSEEN: 20, LEFTOVER: 20}
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
    lists = {CORRUPT: survey.corrupt, UNSEEN: survey.unknown, LEFTOVER: survey.leftover}
    return {
        **survey._asdict(),
        **{name: _shorten(lists[status], _MOST[status]) for status, name in _FIELDS.items()},
    }


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
    counts = raw.get("counts", {})
    corrupt, unknown, leftover = (
        [Checked(*map(str, one)) for one in raw.get(name, ())] for name in _FIELDS.values()
    )
    return Survey(
        {status: int(counts.get(status, 0)) for status in (SOUND, *_FIELDS)},
        corrupt,
        unknown,
        leftover,
        str(raw.get("reason", "")),
        str(raw.get("unfinished", "")),
    )
