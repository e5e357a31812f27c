# SPDX-License-Identifier: BSD-2-Clause
"""Choose users of a host whose sessions are opened beside those of whoever stands for all."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Sequence
from itertools import islice

from ..core.user import User
from ..host.users import read_user
from .host_read import SessionsRead
from .measure import has_shell, pick_users
from .pam_limits import rank_domain
from .rules import find_limits
from .samples import Different, People, find_different

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy import SessionRule

_MOST_NAMES = 1000  # A server of names may take a millisecond for each.
_FEW = 5
_MOST_IN_RANGE = 200


def choose_different(
    rules: Sequence[SessionRule], users: Sequence[str], files: SessionsRead
) -> Different:
    """Return users whom the rules mean, and to whom lines of limits files state something else.

    :param users: Whose sessions are opened anyhow.
    """
    items = {item for rule in rules for item in rule.limits}
    lines = [line for line in files.limits_lines if line.item in items or line.stops]
    known = [user for user in map(read_user, users) if user]
    people = People(_find, _list_members, lambda domain: _list_in_range(domain, files))
    return find_different(
        lines, known, lambda user: find_limits(rules, user), people, files.dialect, _MOST_NAMES
    )


def _find(name: str) -> User | None:
    """Return a user who can log in."""
    user = read_user(name)
    return user if user and has_shell(pwd.getpwnam(name)) else None


def _list_members(group: str) -> list[str]:
    """Return some members of a group who can log in, listed or by primary group."""
    try:
        entry = grp.getgrnam(group)
    except KeyError:
        return []
    primary = [user.pw_name for user in pwd.getpwall() if user.pw_gid == entry.gr_gid]
    return list(islice(filter(_find, [*entry.gr_mem, *primary]), _FEW))


def _list_in_range(domain: str, files: SessionsRead) -> list[str]:
    """Return some users whom a range of numbers means."""
    people = filter(None, map(_find, pick_users(_MOST_IN_RANGE)))
    meant = [user for user in people if rank_domain(domain, user, files.dialect) is not None]
    return [user.name for user in meant[:_FEW]]
