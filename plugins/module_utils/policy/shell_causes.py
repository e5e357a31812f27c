# SPDX-License-Identifier: BSD-2-Clause
"""Say which line of a shell's startup files takes away what PAM gave a session."""

from __future__ import annotations

from .cause import Cause, cite
from .remedy import comment_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .finding import Requirement
    from .shell_limits import ShellLine

CODES = {"shell-lowers": "a startup file of the shell sets a limit after PAM did"}


def find_shell_causes(
    wanted: Requirement, observed: int | str | None, lines: Sequence[ShellLine]
) -> list[Cause]:
    """Return the lines that set the limit to what was observed, or else all that set it.

    A value that the shell computes (``ulimit -n $N``) is known only from what was observed.
    """
    about = [line for line in lines if line.item == wanted.item]
    # Soft follows where hard goes down, so that a line about the other bound may be at fault.
    exact = [line for line in about if line.at.value == observed and wanted.bound in line.bounds]
    return [_blame(line) for line in exact or about]


def _blame(line: ShellLine) -> Cause:
    text = f"{cite(line.at)} sets it when the shell starts, after PAM"
    # A colon stands for the command, which may be all that a branch holds.
    remedy = comment_out(line.at, "log in again", mark=": # ")
    return Cause("shell-lowers", text, remedy, line.at)
