# SPDX-License-Identifier: GPL-3.0-or-later
"""Real cgroups with a limit of memory or tasks, version 1 or 2, for one command each."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from .settings import Words, shell
from .trial import CannotShowError

TOP = Path("/sys/fs/cgroup")
PREFIX = "mlhost-seeds-"


def limit_memory(size: int, name: str) -> Words:
    """Make a cgroup and return what starts a command in it."""
    return _limit("memory", size, name)


def limit_tasks(number: int, name: str) -> Words:
    """Make a cgroup in which so many processes and threads may run at a time."""
    return _limit("pids", number, name)


def _limit(controller: str, most: int, name: str) -> Words:
    first = (TOP / controller).is_dir()
    folder = TOP / (controller if first else "") / f"{PREFIX}{name}"
    file = "memory.limit_in_bytes" if first and controller == "memory" else f"{controller}.max"
    try:
        if not first:
            (TOP / "cgroup.subtree_control").write_text(f"+{controller}")
        folder.mkdir(exist_ok=True)
        (folder / file).write_text(str(most))
    except OSError as exc:
        raise CannotShowError(f"no cgroup can be made here: {exc}") from exc
    return shell(f"echo $$ > {folder}/cgroup.procs")


def remove_all(name: str = "") -> None:
    """Take the cgroups away again whose names begin so; one in which something runs stays."""
    for top in (TOP / "memory", TOP / "pids", TOP):
        for folder in top.glob(f"{PREFIX}{name}*"):
            with suppress(OSError):
                folder.rmdir()
