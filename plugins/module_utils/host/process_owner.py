# SPDX-License-Identifier: BSD-2-Clause
"""Find out which user may have set the limits of a process."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.process_owner import find_owning_uid
from .door import read_kernel_text
from .process import Process, read_process
from .users import name_user


def find_owner(process: Process, proc: str = "/proc") -> str:
    """Return the user who may have set the limits of a process; nothing where only root may have.

    :raises OSError, ValueError: If it has ended, so that nobody can tell: its id may be another's.
    """
    folder = f"{proc}/{process.pid}"
    try:
        loginuid = read_kernel_text(f"{folder}/loginuid").strip()
    except OSError:
        loginuid = ""  # A kernel without auditing keeps none.
    uid = find_owning_uid(read_kernel_text(f"{folder}/status"), process.cgroup, loginuid)
    uid = uid or process.uid
    if read_process(process.pid, proc).start != process.start:
        raise ProcessLookupError(f"process {process.pid} has ended")
    return name_user(uid) if uid else ""


def name_owners(owners: Sequence[str]) -> str:
    """Return one name for the owners of several processes; nothing where one is root's."""
    names = sorted(set(owners))
    if "" in names or not names:
        return ""
    return names[0] if len(names) == 1 else f"{len(names)} users"
