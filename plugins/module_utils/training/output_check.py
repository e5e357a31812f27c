# SPDX-License-Identifier: BSD-2-Clause
"""Judge the output directory of a run: can it save there, resume from there, and is it alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from ..core.finding import UNKNOWN, Finding, Observation, Requirement
from ..core.folder_states import DIRECTORY
from ..host.process_owner import name_owners
from .cache_check import look_there
from .checkpoints import Checkpoint, count_copies, judge_checkpoints
from .folder_measure import find_actor
from .folder_rules import FolderFacts, judge_folder, judge_free, may_work_there, place_of
from .output_read import find_writers, read_checkpoints, read_processes
from .output_runs import find_runs, judge_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import Training

_PROOFS = ("rename", "directory rename")
_OTHERS = 0o022


def check_output(training: Training) -> Iterator[Finding]:
    """Yield what a run finds at its output directory, looked at as the user who will run."""
    path = training.output_dir
    if path is None:
        return
    facts = look_there(path, training, _PROOFS)
    if isinstance(facts, Finding):
        yield facts
        return
    yield from judge_folder(facts)
    checkpoints: list[Checkpoint] = []
    if facts.state == DIRECTORY:
        try:
            checkpoints = read_checkpoints(path, facts.uid)
            limit, resumes = training.save_total_limit, training.resume
            actor = find_actor(facts, [f"{path}/entry"])
            yield from judge_checkpoints(path, checkpoints, limit, resumes, actor)
        except OSError as exc:
            wanted = Requirement(place_of(path), "checkpoints", "value", exact="usable")
            yield Finding(UNKNOWN, wanted, Observation(None, "", f"{path}: {exc}"))
        yield _judge_others(facts)
    if training.checkpoint_size is not None:
        copies = count_copies(checkpoints, training.save_total_limit)
        yield from judge_free(facts, training.checkpoint_size * copies, None)


def _judge_others(facts: FolderFacts) -> Finding:
    writers, may_work = find_writers(facts.real_path), partial(may_work_there, facts)
    runs = list(find_runs(facts.real_path, read_processes(), writers, os.getpid(), may_work))
    of_run = ("", "root", facts.user)
    owner = name_owners(["" if run.user in of_run else run.user for run in runs])
    return judge_runs(facts.path, runs, os.geteuid() == 0 or not facts.mode & _OTHERS, owner)
