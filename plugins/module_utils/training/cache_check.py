# SPDX-License-Identifier: BSD-2-Clause
"""Judge the cache directory of a run: can it be used, by whom, and what does its disk keep."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..core.finding import UNKNOWN, Finding, Observation, Requirement
from ..core.folder_states import DIRECTORY
from .actor_measure import find_actor
from .cache_rules import (
    PACKAGES,
    VARIABLES,
    judge_filesystem,
    judge_shards,
    judge_unique,
    judge_variables,
)
from .folder_measure import look_at_directory
from .folder_rules import judge_folder, judge_free, place_of
from .neighbours_read import find_neighbours
from .packages_read import read_versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .folder_facts import FolderFacts
    from .policy import Training

_SELF = "self"


def check_cache(training: Training) -> Iterator[Finding]:
    """Yield what a run finds at its cache directory, looked at as the user who will run."""
    path = training.cache_dir
    if path is None:
        return
    if "container:" in training.place:
        yield leave_to_container(path, training.place)
        return
    facts = look_at_directory(path, find_user(training))
    facts = facts._replace(actor=find_actor(facts, [path]))
    yield from judge_folder(facts)
    if facts.state == DIRECTORY:
        yield judge_filesystem(facts)
    yield from judge_free(facts, training.cache_free, training.shards)
    yield from _judge_users(training, facts)
    if training.shards is not None and training.workers is not None:
        yield judge_shards(path, training.shards, training.workers, training.ranks_per_node)


def find_user(training: Training) -> str | None:
    """Return who will run it; ``None`` for whoever this process is."""
    kind, _colon, rest = training.place.partition(":")
    return training.user or (rest.rpartition("@")[0] if kind == "session" else None)


def leave_to_container(path: str, place: str) -> Finding:
    """Say that a path of a container is not one of the host."""
    wanted = Requirement(place_of(path), "directory", "value", exact="writable")
    reason = f"{path} of {place} is seen only from inside: run the check there"
    return Finding(UNKNOWN, wanted, Observation(None, "", reason))


def _judge_users(training: Training, facts: FolderFacts) -> Iterator[Finding]:
    """Yield who else uses the directory, and whether the libraries of this process would."""
    if facts.state == DIRECTORY:
        yield from judge_unique(facts, find_neighbours(facts))
    if training.place == _SELF and any(os.environ.get(name) for name in VARIABLES):
        yield from judge_variables(facts.path, os.environ, _find_versions(training))


def _find_versions(training: Training) -> dict[str, str] | None:
    """Return what the run would import; ``None`` where that is not known."""
    if training.python is None:
        return None
    try:
        return read_versions(training.python, find_user(training), PACKAGES)
    except (OSError, KeyError):
        return None
