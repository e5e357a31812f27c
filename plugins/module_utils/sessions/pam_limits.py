# SPDX-License-Identifier: BSD-2-Clause
"""Predict what pam_limits gives a user: which line wins each bound, and what it shadows.

Source: ``parse_config_file()`` and ``process_limit()`` in pam_limits.c, with the patches of
Debian and Ubuntu told apart by :class:`Dialect`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..core.distribution import Dialect
from ..core.values import UNLIMITED, Bound, Declaration, NamedTuple, User
from .limits_conf import LimitsLine, parse_limits_conf, parse_setting, parse_value, to_integer

_USER, _GROUP, _WILDCARD = 0, 1, 4
_NUMBER = r"(?:[\v\f\r]*([+-]?0*[0-9]{1,20}))?"  # strtoul(3) skips white space.
_RANGE = re.compile(f"{_NUMBER}:{_NUMBER}")
_IDS = 2**32  # uid_t and gid_t hold what is left of a longer number.

LIMITS_CONF = "/etc/security/limits.conf"
LIMITS_D = "/etc/security/limits.d"
DROP_IN = f"{LIMITS_D}/90-mlhost.conf"
VENDOR_LIMITS_CONF = "/usr/etc/security/limits.conf"
VENDOR_LIMITS_D = "/usr/etc/security/limits.d"


class _Rivals:
    """The lines that compete for one bound, and the strongest rank among them."""

    def __init__(self) -> None:
        self.best = _WILDCARD
        self.entrants: list[tuple[int, Declaration]] = []


class Resolution(NamedTuple):
    """What the files give a user: per item and bound (``soft``, ``hard``).

    ``stopped_by`` is the two-field line that cancels everything for this user.
    """

    bounds: Mapping[tuple[str, str], Bound]
    stopped_by: Declaration | None = None


def describe_unknown(dialect: Dialect) -> str:
    """Return why nothing can be foretold of a pam_limits, or nothing."""
    known = "pam_limits.so is not here to ask, and how this distribution builds it is not known"
    return "" if dialect.is_known else known


def order_files(files: Mapping[str, str]) -> list[str]:
    """Return the limits files in the order pam_limits reads them.

    A vendor's limits.conf counts where there is none in /etc, and a file of its limits.d where
    /etc has none of that name (``read_limits_dir()``, since 1.5.3).
    """
    drop_ins = {}
    for folder in (VENDOR_LIMITS_D, LIMITS_D):
        for path in files:
            head, name = path.rpartition("/")[::2]
            if head == folder and name.endswith(".conf") and not name.startswith("."):
                drop_ins[name] = path
    mains = [path for path in (LIMITS_CONF, VENDOR_LIMITS_CONF) if path in files]
    return mains[:1] + [drop_ins[name] for name in sorted(drop_ins)]


def read_lines(files: Mapping[str, str], dialect: Dialect) -> list[LimitsLine]:
    """Return every entry of the limits files, in the order pam_limits reads them."""
    order = order_files(files)
    return [line for path in order for line in _parse(files[path], path, dialect.line_length)]


@lru_cache(maxsize=4)
def _parse(text: str, path: str, line_length: int) -> list[LimitsLine]:
    """Keep what was read of a file: whoever asks for one user asks for the next."""
    return parse_limits_conf(text, path, line_length)


def find_obstacle(
    files: Mapping[str, str], hanging: Iterable[str], user: User, dialect: Dialect
) -> str | None:
    """Return the file whose absence keeps a user from logging in, if there is one.

    A two-field line in an earlier file ends the reading before it is missed.

    :param hanging: The links of limits.d that lead nowhere.
    """
    missing = {*hanging, *({LIMITS_CONF} - set(files))}
    if not missing or not dialect.needs_files:
        return None
    for path in order_files({**files, **dict.fromkeys(missing, "")}):
        if path in missing:
            return path
        if any(stops_for(line, user) for line in read_lines({path: files[path]}, dialect)):
            return None
    return None


def rank_domain(domain: str, user: User, dialect: Dialect) -> int | None:
    """Return the priority a line has for a user, 0 the strongest; ``None`` where it has none."""
    if domain == user.name:
        return _USER
    excluded = user.uid == 0 and not dialect.wildcard_root
    if domain == "*":
        return None if excluded else _WILDCARD
    if domain[0] not in "@%":
        return _USER if _is_in_range(domain, user.uid) else None
    if excluded:  # The patch skips the rules of groups for root, and their ranges become uids.
        return _USER if _is_in_range(domain[1:], user.uid) else None
    # Of the domains with a percent sign only maxlogins knows.
    return _GROUP if domain[0] == "@" and is_in_group(domain[1:], user) else None


def is_in_group(name: str, user: User) -> bool:
    """Tell whether a user is in a group; ``min:max`` and ``min:`` mean the primary one alone."""
    if ":" not in name:
        return name in user.groups
    if name.startswith(":"):
        return any(_is_in_range(name, gid) for gid in user.gids)
    return _is_in_range(name, user.gid)


def _is_in_range(text: str, number: int) -> bool:
    """Read ``min:max``, ``min:`` and ``:exact`` as strtoul(3) does; the last is not a maximum."""
    match = _RANGE.fullmatch(text)
    bounds = [to_integer(word) for word in match.groups() if word] if match else []
    if match is None or not bounds or any(abs(bound) >= 2**64 for bound in bounds):
        return False
    low, high = bounds[0] % _IDS, bounds[-1] % _IDS if match[2] else _IDS
    return low <= number <= high


def resolve_limits(
    lines: list[LimitsLine], user: User, dialect: Dialect, nr_open: int = UNLIMITED
) -> Resolution:
    """Return what these lines give a user, before the kernel has its say.

    :param lines: In reading order, see :func:`read_lines`.
    :param nr_open: The value of fs.nr_open, which ``nofile unlimited`` becomes where pam_limits
        reads it.
    """
    unlimited = nr_open if dialect.reads_nr_open else UNLIMITED
    rivals: dict[tuple[str, str], _Rivals] = {}
    for line in lines:
        if stops_for(line, user):
            return Resolution({}, declare(line, ""))
        priority = rank_domain(line.domain, user, dialect)
        item = line.item
        if priority is None or len(line.fields) < 4 or item in dialect.unknown:
            continue
        value = parse_value(item, line.fields[3], unlimited)
        if value is not None:
            _apply(item, line.types, (priority, declare(line, value)), rivals)
    return Resolution({key: rank_lines(one.entrants) for key, one in rivals.items()})


def stops_for(line: LimitsLine, user: User) -> bool:
    """Tell whether a line is a two-field one and matches. It has no wildcard, its groups match
    root everywhere, and with a percent sign it takes a range for uids."""
    if not line.stops:
        return False
    domain = line.domain
    if domain.startswith("@"):
        return is_in_group(domain[1:], user)
    start = 1 if domain.startswith("%") else 0
    return domain == user.name or _is_in_range(domain[start:], user.uid)


def _apply(
    item: str,
    kinds: tuple[str, ...],
    entrant: tuple[int, Declaration],
    rivals: dict[tuple[str, str], _Rivals],
) -> None:
    """Let one line compete for its bounds; a ``-`` line that loses its soft half loses both."""
    priority = entrant[0]
    for kind in kinds:
        others = rivals.get((item, kind))
        if others is None:
            others = rivals[(item, kind)] = _Rivals()
        lost = others.best < priority
        others.best = min(others.best, priority)
        others.entrants.append(entrant)
        if lost:
            return


def rank_lines(entrants: list[tuple[int, Declaration]]) -> Bound:
    """Return the strongest as the winner, of equals the last."""
    ordered = tuple(one for rank, one in sorted(entrants, key=lambda entrant: -entrant[0]))
    return Bound(ordered[-1], ordered[:-1])


def declare(line: LimitsLine, value: int | str) -> Declaration:
    """Return a line as the statement of a value."""
    return Declaration(line.path, line.line, line.text, value)


LOGINS = ("maxlogins", "maxsyslogins")
_ANY_TYPE = (*LOGINS, "nonewprivs")
_SETTINGS = (*_ANY_TYPE, "priority", "chroot")
_ALL_OF_GROUP, _ALL = 2, 3


def resolve_settings(lines: list[LimitsLine], user: User, dialect: Dialect) -> dict[str, Bound]:
    """Return what these lines give a user, by item.

    Priority, privileges, root and logins. Of the first three the last line that matches counts,
    whoever it names; logins have ranks as limits do. Source: ``process_limit()`` and
    ``parse_config_file()`` in pam_limits.c.

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
            found.setdefault(line.item, []).append((_USER, declare(line, value)))
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
