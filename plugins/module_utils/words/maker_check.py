# SPDX-License-Identifier: BSD-2-Clause
"""Judge the folder in which a run will make its output directory, where that is not there yet."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.finding import Finding
from ..training.cache_check import look_there
from ..training.checkpoints import count_copies
from ..training.folder_rules import judge_folder, judge_free
from ..training.policy import SELF, Training
from .files_read import RunFiles

_PROOFS = ("rename", "directory rename")


def find_maker(run: Training) -> str:
    """Return the folder that is there and where the output directory will be.

    Nothing where that is there already, cannot be looked for, or must be there: who says that
    checkpoints are to be judged means an old one.
    """
    is_elsewhere = run.place != SELF and run.user is None
    if run.output_dir is None or "output" in run.needs or run.resume or is_elsewhere:
        return ""
    try:
        there = RunFiles(run.user).find_there(run.output_dir)
    except (OSError, ValueError):
        return ""
    return "" if there == run.output_dir else there


def check_maker(run: Training, folder: str) -> Iterator[Finding]:
    """Yield whether the user who will run can make a directory there, and what its disk keeps."""
    facts = look_there(folder, run, _PROOFS)
    if isinstance(facts, Finding):
        yield facts
        return
    yield from judge_folder(facts)
    if run.checkpoint_size is not None:
        size = run.checkpoint_size * count_copies([], run.save_total_limit)
        yield from judge_free(facts, size, None)
