# SPDX-License-Identifier: BSD-2-Clause
"""What a terminal gets beyond a pipe: colors, and a line that says how far a look is."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_RED, _GREEN, _YELLOW, _CYAN, _BOLD, _DIM = "31", "32", "33", "36", "1", "2"
_END = "\x1b[0m"
_MARKS: Mapping[str, str] = {
    **dict.fromkeys(("FAIL", "short"), f"{_BOLD};{_RED}"),
    **dict.fromkeys(("ok", "fix"), f"{_BOLD};{_GREEN}"),
    **dict.fromkeys(("???", "late", "restart", "old"), f"{_BOLD};{_YELLOW}"),
    **dict.fromkeys(("run", "or", "see", "changed", "set", "restarted"), f"{_BOLD};{_CYAN}"),
    **dict.fromkeys(("why", "who", "note", "wvd", "would"), _DIM),
}
_STARTS = re.compile(rf"( {{0,5}})({'|'.join(map(re.escape, _MARKS))})(?= )")
_REASON = re.compile(r"\d+(?= +\S)")
_HEAD = re.compile(r"\d+ of \d+ requirements? (is met|are met|falls? short)")
_DELAY = 1.0
"""Seconds that nobody minds to wait."""


def wants_color(stream: TextIO, environment: Mapping[str, str] | None = None) -> bool:
    """Tell whether colors are wanted there.

    ``NO_COLOR`` forbids them and wins, ``FORCE_COLOR`` asks for them in a pipe as well; either
    counts where it is not empty (https://no-color.org, https://force-color.org).
    """
    environment = os.environ if environment is None else environment
    if environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or is_terminal(stream, environment)


def is_terminal(stream: TextIO, environment: Mapping[str, str] | None = None) -> bool:
    """Tell whether a stream is a terminal that knows more than letters."""
    environment = os.environ if environment is None else environment
    return stream.isatty() and environment.get("TERM", "dumb") != "dumb"


def paint(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a report with their first words in color."""
    for line in lines:
        mark, number, head = _STARTS.match(line), _REASON.match(line), _HEAD.match(line)
        if head:
            yield (
                _dye(head[0], f"{_BOLD};{_GREEN if head[0].endswith('met') else _RED}")
                + line[head.end() :]
            )
        elif mark:
            yield mark[1] + _dye(mark[2], _MARKS[mark[2]]) + line[mark.end() :]
        elif number:
            yield _dye(number[0], f"{_BOLD};{_RED}") + line[number.end() :]
        else:
            yield line


def _dye(text: str, color: str) -> str:
    return f"\x1b[{color}m{text}{_END}"


class Progress:
    """A line on a terminal that says what is looked at, once that takes longer than a second."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_wanted = is_terminal(stream)
        self._start = time.monotonic()
        self._is_shown = False

    def __call__(self, section: str, number: int, total: int) -> None:
        """Say which section is looked at; this is called often."""
        seconds = time.monotonic() - self._start
        if self._is_wanted and seconds >= _DELAY:
            text = f"looking at {section} ({number} of {total}), {seconds:.0f} s"
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[K{text[:width]}")
            self._is_shown = True

    def clear(self) -> None:
        """Take the line away again, and count the seconds anew."""
        if self._is_shown:
            self._write("\r\x1b[K")
        self._is_shown, self._start = False, time.monotonic()

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
