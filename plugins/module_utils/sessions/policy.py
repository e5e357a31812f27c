# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of PAM logins: rules for users."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.reader import LONGEST_WORD, Key, Limit, read_entries, read_stated
from ..core.values import ITEMS, NamedTuple

KEYS = {
    "users": Key("domains", "whose logins; `*` never means root"),
    "limits": Key("limits", "what a fresh login has", tuple(ITEMS)),
}
_DOMAIN = re.compile(r"[^\s#*%@:][^\s#:]*|\*|@[^\s#:]+|@?([0-9]+:[0-9]*|:[0-9]+)")


class SessionRule(NamedTuple):
    """Limits of PAM logins for some domains of limits.conf(5)."""

    users: tuple[str, ...]
    limits: Mapping[str, Limit]


def read_sessions(raw: object, problems: list[str]) -> tuple[SessionRule, ...]:
    """Read the section ``sessions``; every violation is added to *problems*."""
    rules = []
    items = KEYS["limits"].accepted
    for path, entry in read_entries("sessions", raw, KEYS, problems):
        users = entry.get("users")
        if not isinstance(users, list) or not users:
            problems.append(f"{path}.users: {users!r} was given; a list of domains is accepted")
            users = []
        for user in users:
            if not _is_domain(user):
                problems.append(
                    f"{path}.users: {user!r} is not a domain; accepted are a user, '*', '@group',"
                    " and uid or gid ranges as in limits.conf(5)"
                )
        limits = read_stated(f"{path}.limits", entry.get("limits"), items, problems)
        rules.append(SessionRule(tuple(str(user) for user in users), limits))
    return tuple(rules)


def _is_domain(user: object) -> bool:
    if not isinstance(user, str) or len(user) > LONGEST_WORD or not user.isprintable():
        return False
    return user.isidentifier() or bool(_DOMAIN.fullmatch(user))
