# SPDX-License-Identifier: BSD-2-Clause
"""Read shell text as commands: a backslash joins a line to the next, and comments go.

Source: "Quoting" and "Comments" in bash(1): a ``#`` in quotes begins no comment, and none goes on.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from ..core.values import NamedTuple

_COMMENT = re.compile(r"""(\\.|'[^']*'|"(?:\\.|[^"\\])*")|(?:^|(?<=\s))#.*""")


class Row(NamedTuple):
    """A line of a file, and how much of its command comes before it."""

    start: int
    number: int
    text: str


class Command(NamedTuple):
    """What a shell takes for one line, and the lines of the file that it stands in."""

    text: str
    rows: tuple[Row, ...]

    def find_row(self, place: int) -> Row:
        """Return the line of the file that holds a place of the text."""
        return self.rows[bisect_left(self.rows, Row(place + 1, 0, "")) - 1]


def list_commands(text: str) -> Iterator[Command]:
    """Yield the commands of a text."""
    parts: list[str] = []
    rows: list[Row] = []
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        rows.append(Row(start, number, line))
        goes_on = _goes_on(line)
        parts.append(line[:-1] if goes_on else line)
        start += len(parts[-1])
        if not goes_on:
            yield Command(_strip("".join(parts)), tuple(rows))
            parts, rows, start = [], [], 0
    if rows:
        yield Command(_strip("".join(parts)), tuple(rows))


def strip_comments(text: str) -> str:
    """Return the commands of a text as lines, without comments."""
    return "\n".join(command.text for command in list_commands(text))


def _goes_on(line: str) -> bool:
    """Tell whether the last backslash of a line is not itself quoted by one, or in a comment."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1 and _strip(line).endswith("\\")


def _strip(line: str) -> str:
    return _COMMENT.sub(lambda found: found[1] or "", line) if "#" in line else line
