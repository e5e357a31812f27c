# SPDX-License-Identifier: BSD-2-Clause
"""Find which job this process belongs to, and which containers mount a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..core.folder_states import DIRECTORY
from ..host.door import list_pids
from ..host.files import read_text
from ..host.process import read_process
from ..host.process_owner import find_owner
from .cache_rules import Neighbours
from .folder_facts import FolderFacts, may_work_there

_MARKS = ("/.dockerenv", "/run/.containerenv")
_JOB = "SLURM_JOB_ID"
_NOBODY = "?"


def find_neighbours(facts: FolderFacts) -> Neighbours:
    """Return who else may use a directory that was looked at."""
    host = os.uname().nodename
    inside = any(map(os.path.exists, _MARKS))
    return Neighbours(os.environ.get(_JOB, ""), host, inside, tuple(find_sharers(facts)))


def find_sharers(facts: FolderFacts, proc: str = "/proc") -> Iterator[int]:
    """Yield the first process of every container that mounts the very directory.

    A container has another root directory; one that mounts a directory above it need not use it.
    """
    if facts.state != DIRECTORY:
        return
    below = facts.real_path[len(facts.mount.rstrip("/")) :]
    wanted = (facts.device, (facts.mount_root.rstrip("/") + below) or "/")
    own = _read_mounts(f"{proc}/self")
    seen = {_find_namespace(f"{proc}/self")}
    for pid in sorted(list_pids(proc)):
        space = _find_namespace(f"{proc}/{pid}")
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


def _find_namespace(process: str) -> int:
    """Return which mounts a process sees; 0 where it is gone or somebody else's."""
    try:
        return os.stat(f"{process}/ns/mnt").st_ino
    except OSError:
        return 0


def _read_mounts(process: str) -> dict[str, tuple[str, str]]:
    """Return the device and the directory on it by the path where they are mounted."""
    try:
        text = read_text(f"{process}/mountinfo") or ""
    except OSError:
        return {}
    rows = [line.split(" ") for line in text.splitlines()]
    return {row[4]: (row[2], _decode(row[3])) for row in rows if len(row) > 4}


def _decode(path: str) -> str:
    """Return a path as it is: mountinfo writes blanks as octal numbers."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, char)
    return path
