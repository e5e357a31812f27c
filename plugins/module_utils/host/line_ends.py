# SPDX-License-Identifier: BSD-2-Clause
"""Keep a line that is added to a file from being glued to its last one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ..core.cause import Cause, end_line_before
from ..core.finding import Finding
from .files import read_bytes


def end_lines(findings: Iterable[Finding], root: str = "/") -> list[Finding]:
    """Return findings whose commands end the last line of a file before they add one.

    :param root: The tree that the files are of.
    """
    lacks_end = partial(_lacks_end, root=root)
    return [
        finding._replace(causes=tuple(_end(cause, lacks_end) for cause in finding.causes))
        for finding in findings
    ]


def _end(cause: Cause, lacks_end: partial[bool]) -> Cause:
    commands = tuple(end_line_before(words, lacks_end) for words in cause.remedy.commands)
    return cause._replace(remedy=cause.remedy._replace(commands=commands))


def _lacks_end(path: str, root: str) -> bool:
    try:
        content = read_bytes(path, root) or b"\n"
    except OSError:
        return True  # Who knows; an empty line harms nothing.
    return not content.endswith(b"\n")
