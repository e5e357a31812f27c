# SPDX-License-Identifier: BSD-2-Clause
"""Judge the cache directory of a run: can it be used, by whom, and what does its disk keep."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ..core.finding import PASS, UNKNOWN, Finding, Observation, Requirement
from ..core.folder_states import ABSENT, DIRECTORY
from ..host.door import list_pids
from ..host.look import read_process, read_unit_pids
from ..host.users import find_owner
from .cache_rules import (
    PACKAGES,
    VARIABLES,
    Neighbors,
    judge_filesystem,
    judge_shards,
    judge_unique,
    judge_variables,
)
from .folder_measure import find_actor, look_at_directory
from .folder_rules import (
    FolderFacts,
    judge_absent,
    judge_folder,
    judge_free,
    may_work_there,
    place_of,
)
from .open_files_read import find_space, read_mounts
from .packages_read import read_versions
from .policy import Training
from .proofs_measure import PROOFS

_MARKS = ("/.dockerenv", "/run/.containerenv")
_JOB = "SLURM_JOB_ID"
_NOBODY = "?"


def find_neighbors(facts: FolderFacts) -> Neighbors:
    """Return who else may use a directory that was looked at."""
    host = os.uname().nodename
    inside = any(map(os.path.exists, _MARKS))
    return Neighbors(os.environ.get(_JOB, ""), host, inside, tuple(find_sharers(facts)))


def find_sharers(facts: FolderFacts, proc: str = "/proc") -> Iterator[int]:
    """Yield the first process of every container that mounts the very directory.

    A container has another root directory; one that mounts a directory above it need not use it.
    """
    if facts.state != DIRECTORY:
        return
    below = facts.real_path[len(facts.mount.rstrip("/")) :]
    wanted = (facts.device, (facts.mount_root.rstrip("/") + below) or "/")
    own = _read_mounts(f"{proc}/self")
    seen = {find_space(f"{proc}/self")}
    for pid in sorted(list_pids(proc)):
        space = find_space(f"{proc}/{pid}")
        if space in seen or not space:
            continue
        seen.add(space)
        mounts = _read_mounts(f"{proc}/{pid}")
        is_there = mounts.get("/") != own.get("/") and wanted in mounts.values()
        if is_there and may_work_there(facts, _find_owner(pid, proc)):
            yield pid


def _find_owner(pid: int, proc: str) -> str:
    try:
        return find_owner(read_process(pid, proc), proc)
    except (OSError, ValueError, IndexError):
        return _NOBODY  # It has ended, or nobody can tell whose it is.


def _read_mounts(process: str) -> dict[str, tuple[str, str]]:
    """Return the device and the directory on it by the path where they are mounted."""
    return {row[4]: (row[2], _decode(row[3])) for row in read_mounts(process)}


def _decode(path: str) -> str:
    """Return a path as it is: mountinfo writes blanks as octal numbers."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, char)
    return path


_SELF = "self"


def check_cache(training: Training) -> Iterator[Finding]:
    """Yield what a run finds at its cache directory, looked at as the user who will run."""
    path = training.cache_dir
    if path is None:
        return
    facts = look_there(path, training)
    if isinstance(facts, Finding):
        yield facts
        return
    makes = training.makes_cache and facts.state == ABSENT
    above = look_above(facts, training) if makes else None
    if above is not None:
        facts = above._replace(path=path)
        yield from judge_absent(facts, above.path)
    else:
        yield from judge_folder(facts)
    if facts.state == DIRECTORY:
        yield judge_filesystem(facts)
    yield from judge_free(facts, training.cache_free, training.shards)
    if above is None:
        yield from _judge_users(training, facts)
    if training.shards is not None and training.workers is not None:
        yield judge_shards(path, training.shards, training.workers, training.ranks_per_node)


def find_user(training: Training) -> str | None:
    """Return who will run it; ``None`` for whoever this process is."""
    kind, _colon, rest = training.place.partition(":")
    if training.user or kind == "session":
        return training.user or rest.rpartition("@")[0]
    pids = read_unit_pids(rest) if kind == "service" else ()
    owner = _find_owner(pids[0], "/proc") if pids else ""
    return owner if owner not in ("", _NOBODY, "root") else None


def looks_as_runner(training: Training) -> bool:
    """Tell whether who looks is who will run: root looks as whose a folder is, and may read all."""
    return os.geteuid() != 0 or find_user(training) not in (None, "root")


def look_there(
    path: str, training: Training, proofs: Sequence[str] = tuple(PROOFS)
) -> FolderFacts | Finding:
    """Return a directory as the user finds it who will run; a container's is not the host's."""
    if "container:" in training.place:
        wanted = Requirement(place_of(path), "directory", "value", exact="writable")
        reason = f"{path} of {training.place} is seen only from inside: run the check there"
        return Finding(UNKNOWN, wanted, Observation(None, "", reason))
    facts = look_at_directory(path, find_user(training), proofs)
    return facts._replace(actor=find_actor(facts, [path]))


def look_above(
    facts: FolderFacts, training: Training, proofs: Sequence[str] = tuple(PROOFS)
) -> FolderFacts | None:
    """Return the folder in which a run can make a directory that is absent, if it can."""
    above = look_there(os.path.dirname(facts.at) or "/", training, proofs)
    if isinstance(above, Finding) or above.state != DIRECTORY or above.writing.status != PASS:
        return None
    return above


def _judge_users(training: Training, facts: FolderFacts) -> Iterator[Finding]:
    """Yield who else uses the directory, and whether the libraries of this process would."""
    if facts.state == DIRECTORY:
        yield from judge_unique(facts, find_neighbors(facts))
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
