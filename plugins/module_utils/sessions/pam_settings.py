# SPDX-License-Identifier: BSD-2-Clause
"""Predict what pam_limits sets besides resource limits: priority, privileges, root, logins.

Source: ``process_limit()`` and ``parse_config_file()`` in pam_limits.c. Of the first three the
last line that matches counts, whoever it names; logins have ranks as limits do.
"""

from __future__ import annotations

from ..core.declaration import Bound, Declaration
from ..core.distribution import Dialect
from ..core.user import User
from .limits_conf import LimitsLine, parse_setting
from .pam_limits import declare, is_in_group, rank_domain, rank_lines, stops_for

LOGINS = ("maxlogins", "maxsyslogins")
_ANY_TYPE = (*LOGINS, "nonewprivs")
_SETTINGS = (*_ANY_TYPE, "priority", "chroot")
_ALL_OF_GROUP, _ALL = 2, 3


def resolve_settings(lines: list[LimitsLine], user: User, dialect: Dialect) -> dict[str, Bound]:
    """Return what these lines give a user, by item.

    Both kinds of logins compete for one place. Which kind is counted is what the last matching
    line of either kind names, even if it states no number or one that loses.

    :param lines: In reading order, see :func:`~.pam_limits.read_lines`.
    """
    found: dict[str, list[tuple[int, Declaration]]] = {}
    logins: list[tuple[int, Declaration]] = []
    counted = ""
    for line in lines:
        if stops_for(line, user):
            return {}
        rank = _rank(line, user, dialect)
        if rank is None:
            continue
        value = parse_setting(line.item, line.fields[3])
        if line.item in LOGINS:
            counted = line.item
            if value is not None and not (counted == LOGINS[1] and rank in (_ALL_OF_GROUP, _ALL)):
                logins.append((rank, declare(line, value)))
        elif value is not None:
            found.setdefault(line.item, []).append((0, declare(line, value)))
    if logins:
        found[counted] = logins
    return {item: rank_lines(entrants) for item, entrants in found.items()}


def _rank(line: LimitsLine, user: User, dialect: Dialect) -> int | None:
    """Return the priority of a line that states a setting; ``None`` where it has none."""
    if len(line.fields) < 4 or line.item not in _SETTINGS or line.item in dialect.unknown:
        return None
    if not line.types and line.item not in _ANY_TYPE:
        return None
    if line.item in LOGINS and line.domain.startswith("%"):
        return _rank_everyone(line.domain, user, dialect)
    return rank_domain(line.domain, user, dialect)


def _rank_everyone(domain: str, user: User, dialect: Dialect) -> int | None:
    """Rank ``%`` (all logins together) and ``%group`` (those of its members together)."""
    if user.uid == 0 and not dialect.wildcard_root:
        return rank_domain(domain, user, dialect)
    if domain == "%":
        return _ALL
    name = domain[1:]
    is_group = name.startswith(":") or ":" not in name
    return _ALL_OF_GROUP if is_group and is_in_group(name, user) else None
