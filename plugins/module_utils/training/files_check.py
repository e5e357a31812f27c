# SPDX-License-Identifier: BSD-2-Clause
"""Judge the files of a run's cache: which are damaged, which cannot be told."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator

from ..core.check_options import TIME_LIMIT
from ..core.folder_states import DIRECTORY
from .actor_measure import find_actor
from .cache_check import find_user, leave_to_container
from .cache_integrity import CacheFiles, judge_files
from .folder_measure import look_at_directory
from .open_files_read import find_open_files
from .survey_measure import survey_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.finding import Finding
    from .cache_read import Survey
    from .policy import Training

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
    if "container:" in training.place:
        yield leave_to_container(path, training.place)
        return
    facts = look_at_directory(path, find_user(training), proofs=())
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
    writers: dict[str, int] = {}
    if survey.corrupt:
        start = real_path.rstrip("/") + "/"
        found = find_open_files(real_path)
        writers = {one.path[len(start) :]: one.pid for one in found if one.writes}
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
