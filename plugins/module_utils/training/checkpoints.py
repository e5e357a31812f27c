# SPDX-License-Identifier: BSD-2-Clause
"""Judge the checkpoints of an output directory, as the Trainer of transformers finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..core.cause import Cause
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from ..core.values import NamedTuple
from .folder_rules import blame, place_of

STATE = "trainer_state.json"
"""What a checkpoint ends with; resuming reads it first."""

_CHECKPOINT = re.compile(r"checkpoint-(0|[1-9][0-9]*)")
_HOW = "the names in the directory, and the ends of the newest checkpoint's files"
_SHOWN = 3
_LATER = 1.0  # Seconds; file systems keep coarse times.


class Checkpoint(NamedTuple):
    """One entry named ``checkpoint-N``.

    ``names`` are those in it; ``changed`` is when its state, or else it, was last written. Of the
    newest one, ``damaged`` is what resuming ends at, ``unsure`` what nobody can tell, each a file's
    name, empty for the whole, and the reason; ``lost`` says what a run goes on without. ``title``
    stands for another name.
    """

    number: int
    is_directory: bool = True
    names: tuple[str, ...] = ()
    changed: float = 0.0
    damaged: tuple[tuple[str, str], ...] = ()
    unsure: tuple[tuple[str, str], ...] = ()
    lost: tuple[str, ...] = ()
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or f"checkpoint-{self.number}"

    @property
    def is_complete(self) -> bool:
        return STATE in self.names and not self.damaged and not self.unsure


def find_number(name: str) -> int | None:
    """Return N of ``checkpoint-N``; ``None`` for another name, such as tmp-checkpoint-N."""
    match = _CHECKPOINT.fullmatch(name)
    return int(match[1]) if match else None


def count_copies(checkpoints: Sequence[Checkpoint], limit: int | None) -> int:
    """Return for how many more checkpoints there must be room.

    A new one is written before an old one goes, and those that are there have their room.
    """
    complete = sum(one.is_complete for one in checkpoints)
    return max(1, limit + 1 - complete) if limit else 1


def judge_checkpoints(
    path: str,
    checkpoints: Sequence[Checkpoint],
    limit: int | None,
    resumes: bool | None,
    actor: str | None = "",
) -> Iterator[Finding]:
    """Yield whether the run can save and resume there.

    :param limit: ``save_total_limit``, if any.
    :param resumes: Whether it goes on from the newest checkpoint; ``None`` where nobody said.
    :param actor: As whom remedies run: empty for whoever looks, ``None`` where nobody safely can.
    """
    wanted = require_usable(path)
    folders = sorted(one for one in checkpoints if one.is_directory)
    where = Where(path, actor)
    causes = [*_find_conflicts(where, checkpoints), *_find_hidden(where, folders)]
    if resumes is not False:  # A run that begins at step 0 reads none of them.
        causes += _find_broken(where, folders)
    if resumes and not folders:
        causes.append(blame_none(path))
    if limit:
        saved = [one for one in folders if STATE in one.names]
        causes += _find_stale(where, saved, limit, resumes)
    if causes:
        names = ", ".join(dict.fromkeys(cause.code for cause in causes))
        seen = Observation(f"not usable ({names})", _HOW)
        yield Finding(FAIL, wanted, seen, tuple(causes))
        return
    newest = folders[-1] if folders and resumes is not False else Checkpoint(0)
    newest = newest if resumes else newest._replace(lost=())
    yield from _judge_newest(path, newest, wanted)
    if limit and folders and resumes is None:
        reason = (
            f"{folders[-1].name} is there and save_total_limit is {limit}: a run that does not"
            " resume from it loses checkpoints; say so with resume"
        )
        yield Finding(UNKNOWN, wanted, Observation(None, _HOW, reason))


def require_usable(path: str) -> Requirement:
    return Requirement(place_of(path), "checkpoints", "value", exact="usable")


def blame_none(path: str) -> Cause:
    """Say that there is nothing to go on from."""
    text = f"{path} holds no checkpoint-N, and resuming ends there: No valid checkpoint found"
    return blame("checkpoint-broken", text, "start without resuming, or name the right directory")


def _judge_newest(path: str, newest: Checkpoint, wanted: Requirement) -> Iterator[Finding]:
    """Yield that the newest can be resumed from, and without what; or what nobody can tell."""
    if newest.unsure:
        told = "; ".join(f"{name} {reason}".strip() for name, reason in newest.unsure[:_SHOWN])
        reason = f"{path}/{newest.name}: {told}"
        yield Finding(UNKNOWN, wanted, Observation(None, _HOW, reason))
        return
    lost = f", though {'; '.join(newest.lost)}" if newest.lost else ""
    yield Finding(PASS, wanted, Observation(f"{wanted.exact}{lost}", _HOW))


class Where(NamedTuple):
    """The output directory, and as whom what it holds may be moved."""

    path: str
    actor: str | None

    def blame(self, code: str, text: str, fix: str, one: Checkpoint) -> Cause:
        """Blame an entry, which goes aside to a name that no pattern of theirs fits."""
        folder = self.path.rstrip("/")
        move = ("mv", "-nT", f"{folder}/{one.name}", f"{folder}/aside-{one.name}")
        return blame(code, text, fix, *(() if one.title else (move,)), actor=self.actor)


def _find_conflicts(where: Where, checkpoints: Sequence[Checkpoint]) -> Iterator[Cause]:
    for one in checkpoints:
        if not one.is_directory:
            path = f"{where.path}/{one.name}"
            text = f"{path} is not a directory, and saving step {one.number} ends there"
            yield where.blame("checkpoint-conflict", text, "move it aside", one)


def _find_hidden(where: Where, folders: Sequence[Checkpoint]) -> Iterator[Cause]:
    """Yield the directories that seem empty and are not."""
    for one in filter(_is_hidden, folders):
        names = ", ".join(one.names[:_SHOWN])
        text = (
            f"{where.path}/{one.name} holds nothing but hidden files ({names}): a rename onto"
            " it ends with [Errno 39] Directory not empty, and resuming finds nothing"
        )
        yield where.blame("checkpoint-hidden-files", text, "move it aside", one)


def _is_hidden(one: Checkpoint) -> bool:
    return bool(one.names) and all(name.startswith(".") for name in one.names)


def _find_broken(where: Where, folders: Sequence[Checkpoint]) -> Iterator[Cause]:
    """Yield the newest if a run cannot go on from it."""
    if not folders or _is_hidden(folders[-1]):
        return
    newest, fix = folders[-1], "move it aside, so that the one before it is the newest"
    if len(folders) == 1:
        fix = "move it aside, and start without resuming"
    told = _describe(newest)
    if told:
        text = f"{where.path}/{newest.name}, the newest, {told}: resuming ends there"
        yield where.blame("checkpoint-broken", text, fix, newest)


def _describe(one: Checkpoint) -> str:
    """Return why a run cannot go on from a checkpoint; nothing where it can."""
    if not one.names:
        return "is empty"
    told = "; ".join(f"{name} {reason}".strip() for name, reason in one.damaged[:_SHOWN])
    more = f"; and {len(one.damaged) - _SHOWN} more" if len(one.damaged) > _SHOWN else ""
    return f"{told}{more}"


def _find_stale(
    where: Where, folders: Sequence[Checkpoint], limit: int, resumes: bool | None
) -> Iterator[Cause]:
    """Yield the checkpoints of an older run whose numbers are higher: they count as the newest."""
    for one in folders:
        lower = [other for other in folders if other.number < one.number]
        newer = [other for other in lower if other.changed > one.changed + _LATER]
        if newer:
            told = f"is older than {newer[-1].name}"
        elif resumes is False:
            told = "is of an earlier run, and this one begins at step 0"
        else:
            continue
        text = (
            f"{where.path}/{one.name} {told}: with save_total_limit {limit},"
            " either this one or the new ones are deleted"
        )
        fix = "move it aside, or name another directory"
        yield where.blame("checkpoint-stale", text, fix, one)
