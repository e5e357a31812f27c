# SPDX-License-Identifier: BSD-2-Clause
"""Predict what pam_limits gives a user: which line wins each bound, and what it shadows.

Source: ``parse_config_file()`` and ``process_limit()`` in pam_limits.c, with the patches of
Debian and Ubuntu told apart by :class:`Dialect`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .declaration import Declaration
from .limits_conf import LimitsLine, parse_limits_conf, parse_value
from .rlimit import UNLIMITED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_USER, _GROUP, _WILDCARD, _UNSET = 0, 1, 4, 6
_RANGE = re.compile(r"([0-9]*):([0-9]*)")

LIMITS_CONF = "/etc/security/limits.conf"
LIMITS_D = "/etc/security/limits.d"


class Dialect(NamedTuple):
    """Where builds of pam_limits differ.

    ``line_length``: where the buffer ends a line, 0 for never. ``wildcard_root``: whether ``*``
    and groups match root. ``resets``: whether a session starts from the limits of PID 1.
    ``refuses``: whether a limit that the kernel refuses ends the login.
    """

    line_length: int = 0
    wildcard_root: bool = True
    resets: bool = False
    refuses: bool = True


class User(NamedTuple):
    """What pam_limits asks of a user; ``groups`` and ``gids`` hold the primary group too."""

    name: str
    uid: int
    gid: int
    groups: frozenset[str] = frozenset()
    gids: frozenset[int] = frozenset()


class Bound(NamedTuple):
    """The line that wins one bound of one item, and those it shadows, strongest last."""

    winner: Declaration
    shadowed: tuple[Declaration, ...] = ()


class Resolution(NamedTuple):
    """What the files give a user: per item and bound (``soft``, ``hard``).

    ``stopped_by`` is the two-field line that cancels everything for this user.
    """

    bounds: Mapping[tuple[str, str], Bound]
    stopped_by: Declaration | None = None


def find_dialect(os_release: Mapping[str, str]) -> Dialect:
    """Return how pam_limits behaves on a distribution, from the fields of os-release(5).

    Measured on Debian 12 and 13; Ubuntu and Red Hat are read from their sources.
    """
    family = (os_release.get("ID", "") + " " + os_release.get("ID_LIKE", "")).split()
    major = re.match(r"[0-9]+", os_release.get("VERSION_ID", ""))
    version = int(major[0]) if major else 0
    if "ubuntu" in family:
        return Dialect(1023, wildcard_root=False, resets=version <= 24, refuses=False)
    if "debian" in family:
        old = version <= 12 and version > 0
        return Dialect(1023 if old else 0, wildcard_root=False, resets=old, refuses=False)
    return Dialect(1023)


def order_files(files: Mapping[str, str]) -> list[str]:
    """Return the limits files in the order pam_limits reads them."""
    drop_ins = [
        path
        for path in files
        if path.startswith(f"{LIMITS_D}/")
        and path.endswith(".conf")
        and not path.startswith(f"{LIMITS_D}/.")
        and "/" not in path[len(LIMITS_D) + 1 :]
    ]
    return ([LIMITS_CONF] if LIMITS_CONF in files else []) + sorted(drop_ins)


def read_lines(files: Mapping[str, str], dialect: Dialect) -> list[LimitsLine]:
    """Return every entry of the limits files, in the order pam_limits reads them."""
    return [
        line
        for path in order_files(files)
        for line in parse_limits_conf(files[path], path, dialect.line_length)
    ]


def rank_domain(domain: str, user: User, dialect: Dialect) -> int | None:
    """Return the priority a line has for a user, 0 the strongest; ``None`` where it has none."""
    if domain == user.name:
        return _USER
    if domain.startswith("%"):
        return None  # Only maxlogins knows this domain.
    if domain.startswith("@"):
        excluded = user.uid == 0 and not dialect.wildcard_root
        return _GROUP if not excluded and _is_in_group(domain[1:], user) else None
    if domain == "*":
        return _WILDCARD if user.uid != 0 or dialect.wildcard_root else None
    limits = _RANGE.fullmatch(domain)
    return _USER if limits and _is_in_range(limits[1], limits[2], user.uid) else None


def _is_in_group(name: str, user: User) -> bool:
    limits = _RANGE.fullmatch(name)
    if limits is None:
        return name in user.groups
    if not limits[1]:
        return limits[2] != "" and int(limits[2]) in user.gids
    return _is_in_range(limits[1], limits[2], user.gid)


def _is_in_range(low: str, high: str, number: int) -> bool:
    """Read ``min:max``, ``min:`` and ``:exact``; the last is not a maximum."""
    if not low:
        return high != "" and number == int(high)
    return int(low) <= number and (high == "" or number <= int(high))


def resolve_limits(
    lines: list[LimitsLine], user: User, dialect: Dialect, nr_open: int = UNLIMITED
) -> Resolution:
    """Return what these lines give a user, before the kernel has its say.

    :param lines: In reading order, see :func:`read_lines`.
    :param nr_open: The value of fs.nr_open, which ``nofile unlimited`` becomes.
    """
    rank: dict[tuple[str, str], int] = {}
    bounds: dict[tuple[str, str], Bound] = {}
    for line in lines:
        priority = rank_domain(line.domain, user, dialect)
        if line.stops and _stops_for(line, user):
            return Resolution({}, _declare(line, ""))
        if priority is None or len(line.fields) < 4:
            continue
        value = parse_value(line.item, line.fields[3], nr_open)
        if value is not None:
            _apply(line, value, priority, rank, bounds)
    return Resolution(bounds)


def _stops_for(line: LimitsLine, user: User) -> bool:
    """Tell whether a two-field line matches; unlike other lines it has no wildcard, and its
    groups match root everywhere."""
    everywhere = Dialect(wildcard_root=True)
    return line.domain != "*" and rank_domain(line.domain, user, everywhere) is not None


def _apply(
    line: LimitsLine,
    value: int,
    priority: int,
    rank: dict[tuple[str, str], int],
    bounds: dict[tuple[str, str], Bound],
) -> None:
    """Let one line set its bounds; a ``-`` line that loses its soft half loses both."""
    declaration = _declare(line, value)
    for kind in line.types:
        key = (line.item, kind)
        held = bounds.get(key)
        if rank.get(key, _UNSET) < priority:
            if held:
                bounds[key] = Bound(held.winner, (declaration, *held.shadowed))
            return
        rank[key] = priority
        bounds[key] = Bound(declaration, (*held.shadowed, held.winner) if held else ())


def _declare(line: LimitsLine, value: int | str) -> Declaration:
    return Declaration(line.path, line.line, line.text.rstrip("\r"), value)
