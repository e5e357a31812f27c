# SPDX-License-Identifier: BSD-2-Clause
"""A user as the system's databases have one."""

from __future__ import annotations

from .named import NamedTuple


class User(NamedTuple):
    """What pam_limits asks of a user.

    ``groups`` and ``gids`` hold every group that the system knows by name, the primary one too.
    """

    name: str
    uid: int
    gid: int
    groups: frozenset[str] = frozenset()
    gids: frozenset[int] = frozenset()
