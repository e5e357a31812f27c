# SPDX-License-Identifier: BSD-2-Clause
"""Split the text of a configuration file into lines as systemd does."""

from __future__ import annotations

import re

_LINE_END = "(?:\n\r?|\r\n?)\0?|\0"


def split_lines(text: str) -> list[str]:
    """Return the lines without what ends them, the rest after the last end too.

    Source: ``read_line_full()`` in fileio.c.
    """
    if "\r" not in text and "\0" not in text:
        return text.split("\n")
    return re.split(_LINE_END, text)
