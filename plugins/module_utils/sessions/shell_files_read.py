# SPDX-License-Identifier: BSD-2-Clause
"""Read the startup files of shells, and what they read, for lines that set limits."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Collection, Iterable, Iterator

from ..core.values import Declaration
from ..host.door import find_paths
from ..host.files import read_text
from ..kernel.glob_pattern import is_pattern
from .shell_limits import (
    BOTH,
    ShellLine,
    find_shell_limits,
    is_known_shell,
    list_startup_files,
)
from .shell_measure import NO_HOME
from .shell_sources import Sources, find_sources

_DEEPEST = 3  # Files that read files that read files.
_MOST_FILES = 500  # A folder that a pattern names may be a user's, and hold any number.
_ANYWHERE = ("/",)
_SHARED = ("/etc/", "/usr/")  # Where root alone writes.


def find_shared_lines(shell: str, items: Collection[str]) -> Iterator[ShellLine]:
    """Yield the lines of startup files that all users share, and root wrote."""
    yield from _find_in_shell(shell, items)
    patterns = [one for one in list_startup_files(shell) if one.startswith("/")]
    paths = [path for pattern in patterns for path in find_paths(pattern)]
    yield from find_lines(paths, NO_HOME, items, [], _SHARED)


def _find_in_shell(shell: str, items: Collection[str]) -> Iterator[ShellLine]:
    """Yield what a login shell states whose startup files are not known.

    It may be a script around another one, or a program that sets limits of its own accord.
    """
    if is_known_shell(shell):
        return
    try:
        text = read_text(shell) or ""
    except OSError:
        text = ""
    stated = list(find_shell_limits(text, shell, hints=True)) if text.startswith("#!") else []
    found = [one for one in stated if one.item in ("", *items)]
    yield from found or [ShellLine("", BOTH, Declaration(shell, 0, "a login shell", ""))]


def find_lines(
    paths: Iterable[str],
    home: str,
    items: Collection[str],
    odd: list[str],
    within: tuple[str, ...] = _ANYWHERE,
) -> Iterator[ShellLine]:
    """Yield the lines of files, and of those that they read, that set one of these items.

    :param odd: Takes in what a shell cannot get through.
    :param within: What the paths begin with that are read.
    """
    waiting: deque[tuple[str, Declaration | None, int]] = deque((path, None, 0) for path in paths)
    seen = set()
    while waiting:
        path, at, depth = waiting.popleft()
        if path in seen:
            continue
        seen.add(path)
        if len(seen) > _MOST_FILES:
            yield ShellLine("", (), at or Declaration(path, 0, "", ""))
            break
        try:
            text = _read_startup(path, odd) if _is_within(path, within) else None
        except OSError as exc:
            # A shell cannot read it either, unless it is only larger than a startup file is.
            odd += [] if exc.errno else [str(exc)]
            text = None if within != _ANYWHERE else ""
        if text is None:
            yield from [ShellLine("", (), at)] if at else []
            continue
        stated = find_shell_limits(text, path, hints=True)
        yield from (line for line in stated if line.item in ("", *items))
        sources = find_sources(text, path, home)
        unclear = () if _is_of_package(path) else (*sources.unclear, *sources.becomes)
        yield from (ShellLine("", (), one) for one in dict.fromkeys(unclear))
        if depth < _DEEPEST:
            waiting += [(name, at, depth + 1) for name, at in _find_named(sources)]


def _find_named(sources: Sources) -> Iterator[tuple[str, Declaration]]:
    for pattern, at in sources.named:
        for name in find_paths(pattern) if is_pattern(pattern) else [pattern]:
            yield name, at


def _read_startup(path: str, odd: list[str]) -> str:
    """Return what a shell reads of a file; nothing of what is not a file."""
    try:
        strange = _find_strange(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return ""
    odd += [f"{path} is {strange}"] if strange else []
    return (os.path.isfile(path) and read_text(path)) or ""


def _is_within(path: str, within: tuple[str, ...]) -> bool:
    return os.path.normpath(path).startswith(within)


def _is_of_package(path: str) -> bool:
    """Tell whether a package brings a file: what it has a shell read, it brings as well."""
    return path.startswith("/usr/") and not path.startswith("/usr/local/")


def _find_strange(found: os.stat_result) -> str:
    """Return what a file is that a shell would read without an end; /dev/null ends at once."""
    if stat.S_ISFIFO(found.st_mode):
        return "a FIFO"
    if stat.S_ISCHR(found.st_mode) and found.st_rdev != os.makedev(1, 3):
        return "a device"
    return ""
