# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and explain /etc/toys.conf, which holds lines as ``marbles = 5``; the last one counts."""

from __future__ import annotations

from ..core.cause import Cause, cite, replace_line
from ..core.values import Declaration

PATH = "/etc/toys.conf"
CODES = {"toys-too-few": "the last line of toys.conf states too few"}


def parse_toys(text: str) -> list[Declaration]:
    """Return every line that states marbles."""
    lines = enumerate(text.splitlines(), start=1)
    return [
        Declaration(PATH, number, line, int(line.rpartition("=")[2]))
        for number, line in lines
        if line.startswith("marbles")
    ]


def blame(least: int, lines: list[Declaration]) -> tuple[Cause, ...]:
    """Return why there are too few, if they are."""
    if not lines or int(lines[-1].value) >= least:
        return ()
    remedy = replace_line(lines[-1], f"marbles = {least}")
    return (Cause("toys-too-few", f"{cite(lines[-1])} states too few", remedy, lines[-1]),)
