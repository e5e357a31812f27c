# SPDX-License-Identifier: BSD-2-Clause
"""In which state the way to a directory was found."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

DIRECTORY = "a directory"
ABSENT = "absent"
NO_DIRECTORY = "no directory"
CLOSED = "closed"
FOREIGN_LINK = "a link of somebody else"
BROKEN = "broken"
UNKNOWN_STATE = "unknown"
