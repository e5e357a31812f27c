# SPDX-License-Identifier: BSD-2-Clause
"""Judge what was seen of the files of a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from .file_verdict import QUARANTINE
from .folder_rules import place_of
from .workspace_causes import blame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.cause import Cause

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
