# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards of the library that can be taken out, to show that an attack works without them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any


def _replace(module: str, name: str, value: Any) -> None:
    """Put something in the place of what a module has.

    :raises AttributeError: If it has nothing of that name: a guard that moved stands as it did.
    """
    found = importlib.import_module(f"mlhost_limits.{module}")
    getattr(found, name)
    setattr(found, name, value)


def follow_every_link() -> None:
    """Follow links on the way to a directory, whoever made them."""

    def read(link: int, _path: str, _owner: int, _count: int) -> str:
        return os.readlink("", dir_fd=link)

    _replace("host.open_directory", "_read_link", read)


def write_anywhere() -> None:
    """Make a workspace wherever its path leads."""
    _replace("workspace.settle", "find_target", os.path.realpath)


def print_every_byte() -> None:
    """Print what a user wrote as it is."""
    _replace("cli", "clean", lambda text: text)


def stay_root() -> None:
    """Do as root what a child does as a user."""
    _replace("host.as_user", "leave_root", lambda *_arguments: None)


def keep_keyrings() -> None:
    """Leave root's keyrings to a child that is a user."""
    _replace("host.leave_root", "_leave_keyrings", lambda: None)


def believe_names() -> None:
    """Take every process for root's daemon that bears its name."""

    def is_daemon(pid: int, program: str, *_others: object) -> bool:
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                return file.read().rstrip("\n") == program[:15]
        except OSError:
            return False

    _replace("host.daemons", "is_daemon", is_daemon)
    _replace("host.daemons", "is_roots", lambda *_arguments: True)


def believe_slurmd() -> None:
    """Take the oldest process of that name for slurmd, whoever started it."""
    processes = importlib.import_module("mlhost_limits.host.look").find_processes

    def find() -> Any:
        named = [one for one in processes() if one.comm == "slurmd"]
        return min(named, key=lambda one: one.start, default=None)

    _replace("slurm.read", "find_slurmd", find)


def blame_root() -> None:
    """Take what a user did for root's doing."""
    _replace("core.finding", "is_short_by_root", lambda finding: finding.status == "fail")


def wait_for_ever() -> None:
    """Wait for every answer until it comes."""
    guarded = importlib.import_module("mlhost_limits.host.guarded").run_guarded
    errands = importlib.import_module("mlhost_limits.host.as_user").Errands
    start = errands.start
    _replace("host.guarded", "run_guarded", lambda task, _seconds: guarded(task, 1e5))
    errands.start = lambda self, name, one: start(self, name, one._replace(seconds=1e5))


def open_what_is_there() -> None:
    """Open files by their path alone, whosever they are and whatever kind they have."""
    door = importlib.import_module("mlhost_limits.host.door")
    door._Walk.judge_end = lambda *_arguments: None

    def look(walk: Any, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=walk.handle, follow_symlinks=False)

    def open_file(path: str, root: str = "/") -> int:
        return os.open(path if root == "/" else f"{root}{path}", os.O_RDONLY | os.O_CLOEXEC)

    door._Walk.look = look
    _replace("host.door", "open_file", open_file)


GUARDS: dict[str, Callable[[], None]] = {
    "open_directory": follow_every_link,
    "clean": print_every_byte,
    "find_target": write_anywhere,
    "leave_root": stay_root,
    "keyrings": keep_keyrings,
    "is_daemon": believe_names,
    "find_slurmd": believe_slurmd,
    "owner": blame_root,
    "deadline": wait_for_ever,
    "door": open_what_is_there,
}
