# SPDX-License-Identifier: BSD-2-Clause
"""Predict what pam_limits gives a user: which line wins each bound, and what it shadows.

Source: ``parse_config_file()`` and ``process_limit()`` in pam_limits.c, with the patches of
Debian and Ubuntu told apart by :class:`Dialect`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..core.declaration import Bound, Declaration
from ..core.named import NamedTuple
from ..core.rlimit import UNLIMITED
from ..core.user import User
from .limits_conf import LimitsLine, parse_limits_conf, parse_value, to_integer

_USER, _GROUP, _WILDCARD = 0, 1, 4
_NUMBER = r"(?:[\v\f\r]*([+-]?0*[0-9]{1,20}))?"  # strtoul(3) skips white space.
_RANGE = re.compile(f"{_NUMBER}:{_NUMBER}")
_UBUNTU_1_4 = re.compile(r"(1[0-9]|2[01])\b|22\.(04|10)")  # Mint counts otherwise: its 22 is 24.04.
_IDS = 2**32  # uid_t and gid_t hold what is left of a longer number.

LIMITS_CONF = "/etc/security/limits.conf"
LIMITS_D = "/etc/security/limits.d"
DROP_IN = f"{LIMITS_D}/90-mlhost.conf"


class Dialect(NamedTuple):
    """Where builds of pam_limits differ in what they read.

    ``line_length``: where the buffer ends a line, 0 for never (since 1.6). ``wildcard_root``:
    whether ``*`` and groups match root. ``reads_nr_open``: whether an unlimited nofile becomes
    fs.nr_open (since 1.5.2); where it does not, the kernel refuses it. ``unknown``: the items
    whose lines are skipped (nonewprivs is known since 1.5.0, rttime since 1.7.1, and chroot to
    Debian's patch alone). ``needs_files``: whether a limits.conf that is missing, or a link in
    limits.d that hangs, ends every login (until 1.5.3).
    """

    line_length: int = 0
    wildcard_root: bool = True
    reads_nr_open: bool = True
    unknown: tuple[str, ...] = ("rttime", "chroot")
    needs_files: bool = False

    @property
    def resets(self) -> bool:
        """Tell whether sessions start over from the limits of process 1, as Debian's patch had
        it before 1.7.0."""
        return self.line_length > 0 and not self.wildcard_root


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


def find_dialect(os_release: Mapping[str, str]) -> Dialect:
    """Return how pam_limits behaves on a distribution, from the fields of os-release(5).

    Measured on Debian 11, 12 and 13; Ubuntu and Red Hat are read from their sources.
    """
    family = (os_release.get("ID", "") + " " + os_release.get("ID_LIKE", "")).split()
    major = re.match(r"[0-9]+", os_release.get("VERSION_ID", ""))
    version = int(major[0][:9]) if major else 99
    if "ubuntu" in family:
        with_1_4 = _UBUNTU_1_4.match(os_release.get("VERSION_ID", "")) is not None
        return _debian(with_1_4, version <= 24)._replace(needs_files=with_1_4)
    if "debian" in family:
        return _debian(version <= 11, version <= 12)
    if "rhel" in family and version >= 10:
        return Dialect()
    if "rhel" in family and version == 8:
        return Dialect(1023, unknown=("rttime", "chroot", "nonewprivs"), needs_files=True)
    return Dialect(1023, needs_files="rhel" in family)


def _debian(with_1_4: bool, with_buffer: bool) -> Dialect:
    """Return the dialect of a build with Debian's patches, which have chroot and spare root."""
    unknown = ("rttime", "nonewprivs") if with_1_4 else ("rttime",)
    return Dialect(1023 if with_buffer else 0, False, not with_1_4, unknown, with_buffer)


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
    if not dialect.needs_files:
        return None
    for path in order_files({**files, **dict.fromkeys(missing, "")}):
        if path in missing:
            return path
        if resolve_limits(read_lines({path: files[path]}, dialect), user, dialect).stopped_by:
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
    """Read ``min:max``, ``min:`` and ``:exact`` as strtoul(3) does; the last is no maximum."""
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
        if priority is None or len(line.fields) < 4 or line.item in dialect.unknown:
            continue
        value = parse_value(line.item, line.fields[3], unlimited)
        if value is not None:
            _apply(line, priority, declare(line, value), rivals)
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
    line: LimitsLine,
    priority: int,
    declaration: Declaration,
    rivals: dict[tuple[str, str], _Rivals],
) -> None:
    """Let one line compete for its bounds; a ``-`` line that loses its soft half loses both."""
    for kind in line.types:
        others = rivals.setdefault((line.item, kind), _Rivals())
        lost = others.best < priority
        others.best = min(others.best, priority)
        others.entrants.append((priority, declaration))
        if lost:
            return


def rank_lines(entrants: list[tuple[int, Declaration]]) -> Bound:
    """Return the strongest as the winner, of equals the last."""
    ordered = [one for rank, one in sorted(entrants, key=lambda entrant: -entrant[0])]
    return Bound(ordered[-1], tuple(ordered[:-1]))


def declare(line: LimitsLine, value: int | str) -> Declaration:
    """Return a line as the statement of a value."""
    return Declaration(line.path, line.line, line.text, value)
