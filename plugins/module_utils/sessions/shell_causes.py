# SPDX-License-Identifier: BSD-2-Clause
"""Say which line of a shell's startup files takes away what PAM gave a session."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from ..core.cause import Cause, Remedy, cite, comment_out
from ..core.finding import Requirement
from .shell_limits import OF_ROOT, ShellLine, find_shell_limits

CODES = {
    "shell-lowers": "a startup file of the shell sets a limit after PAM did",
    "shell-gives-no-session": "the user's shell does not start, so that a login gives nothing",
}


def find_shell_causes(
    wanted: Requirement,
    observed: int | str | None,
    lines: Sequence[ShellLine],
    user: str,
    home: str,
) -> list[Cause]:
    """Return the lines that set the limit to what was observed, or else all that set it.

    A value that the shell computes (``ulimit -n $N``) is known only from what was observed.

    :param user: Whose shell it is; in the home of that user remedies run as that user.
    """
    about = [line for line in lines if line.item in ("", wanted.item)]
    # Soft follows where hard goes down, so that a line about the other bound may be at fault.
    exact = [line for line in about if line.at.value == observed and wanted.bound in line.bounds]
    stated = [line for line in about if line.bounds]
    return [_blame(line, user, home) for line in exact or stated or about]


def _blame(line: ShellLine, user: str, home: str) -> Cause:
    if not line.at.line:
        text = f"{line.at.path}, the login shell of {user}, sets it after PAM"
        remedy = Remedy(f"let it set no limit, or give {user} another shell with chsh")
        return Cause("shell-lowers", text, remedy, line.at)
    if not line.bounds:
        text = f"{cite(line.at)} has the shell read or become what sets it, after PAM"
        return Cause("shell-lowers", text, Remedy("let what it names set no limit"), line.at)
    text = f"{cite(line.at)} sets it when the shell starts, after PAM"
    # A colon stands for the command, which may be all that a branch holds.
    inside = home.startswith("/") and line.at.path.startswith(f"{home.rstrip('/')}/")
    owner = user if inside else ""
    remedy = comment_out(line.at, "log in again", mark=": # ", user=owner)
    if not _is_plain(line) or not (owner or _is_of_root(line.at.path)):
        remedy = Remedy(remedy.text, (), remedy.then)
    return Cause("shell-lowers", text, remedy, line.at)


def _is_plain(line: ShellLine) -> bool:
    """Tell whether a line says what a user's child says of it, in a file without detours."""
    path, text = line.at.path, line.at.text
    stated = [one.item for one in find_shell_limits(text, path)]
    detour = any(part in ("", ".", "..") for part in path.split("/")[1:])
    return line.item in stated and not detour


def _is_of_root(path: str) -> bool:
    """Tell whether root's commands may edit a startup file: a user cannot name any other file."""
    return any(fnmatchcase(path, pattern) for pattern in OF_ROOT)
