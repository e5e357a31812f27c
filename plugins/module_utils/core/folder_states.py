# SPDX-License-Identifier: BSD-2-Clause
"""In which state the way to a directory was found."""

from __future__ import annotations

DIRECTORY = "a directory"
ABSENT = "absent"
NO_DIRECTORY = "no directory"
CLOSED = "closed"
FOREIGN_LINK = "a link of somebody else"
BROKEN = "broken"
UNKNOWN_STATE = "unknown"
