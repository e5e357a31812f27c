# SPDX-License-Identifier: BSD-2-Clause
"""What a message of a failure is: the words of a line, and what they may mean."""

from __future__ import annotations

import re

from ..core.values import NamedTuple

CAUSE, PLAIN, AFTER, WRAPPER = 3, 2, 1, 0
"""A message that names what happened; an error of any program; what follows when another process
has died; and what a launcher says of a worker, whatever that died of."""


class Message(NamedTuple):
    """What a line may hold, and what that means.

    ``keys`` are texts in lower case, of which a line holds one: they are found quickly. ``words``
    must match in the line, ``near`` in what stands around it. ``reasons`` are codes, the most
    likely first.
    """

    keys: tuple[str, ...]
    words: re.Pattern[str] | None
    reasons: tuple[str, ...]
    near: re.Pattern[str] | None = None
    rank: int = CAUSE


def say(
    keys: str, reasons: tuple[str, ...], words: str = "", near: str = "", rank: int = CAUSE
) -> Message:
    """Return a message; keys are parted by ``|``."""
    first, second = (re.compile(one, re.IGNORECASE) if one else None for one in (words, near))
    return Message(tuple(keys.split("|")), first, reasons, second, rank)
