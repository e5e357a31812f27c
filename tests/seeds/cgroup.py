# SPDX-License-Identifier: GPL-3.0-or-later
"""Real cgroups with a limit of memory, version 1 or 2, for one command each."""

from __future__ import annotations

from pathlib import Path

from .settings import Words, shell
from .trial import CannotShowError

TOP = Path("/sys/fs/cgroup")
PREFIX = "mlhost-seeds-"


def limit_memory(size: int, name: str) -> Words:
    """Make a cgroup and return what starts a command in it."""
    first = (TOP / "memory").is_dir()
    folder = TOP / ("memory" if first else "") / f"{PREFIX}{name}"
    try:
        if not first:
            (TOP / "cgroup.subtree_control").write_text("+memory")
        folder.mkdir(exist_ok=True)
        (folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(size))
    except OSError as exc:
        raise CannotShowError(f"no cgroup can be made here: {exc}") from exc
    return shell(f"echo $$ > {folder}/cgroup.procs")


def remove_all() -> None:
    """Take the cgroups away again; nothing runs in them any more."""
    for top in (TOP / "memory", TOP):
        for folder in top.glob(f"{PREFIX}*"):
            folder.rmdir()
