# SPDX-License-Identifier: BSD-2-Clause
"""What a key of a policy is: what its reader accepts, and what the docs say of it.

A name in capitals stands for one of the user's own: of a sysctl, a unit, a package.
"""

from __future__ import annotations

from collections.abc import Mapping

from .named import NamedTuple


class Key(NamedTuple):
    """One key: the kind of its value, what it means, and what its kind leaves open.

    ``accepted`` are the items of limits, or the words of a choice. ``least`` and ``most`` bound a
    number. ``below`` are the keys of a mapping, or of each mapping of a list.
    """

    kind: str
    text: str
    accepted: tuple[str, ...] = ()
    least: int = 0
    most: int = 10**6
    below: Mapping[str, Key] = {}


BOUNDS = {
    "soft": Key("limit", "what a process begins with: set exactly, checked as a minimum"),
    "hard": Key("limit", "how far it may raise that itself: set exactly, checked as a minimum"),
    "max": Key("limit", "the highest hard limit that passes; only checked"),
}
