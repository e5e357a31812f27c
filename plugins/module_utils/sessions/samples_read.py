# SPDX-License-Identifier: BSD-2-Clause
"""Choose users of a host whose sessions are opened beside those of whoever stands for all."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice

from ..core.distribution import Dialect
from ..core.values import NamedTuple, User
from ..host.users import read_user
from .host_read import SessionsRead
from .limits_conf import LimitsLine
from .measure import has_shell, pick_users
from .pam_limits import Resolution, rank_domain, resolve_limits
from .rules import find_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit
    from .limits_read import SessionFiles
    from .policy import SessionRule

    Wanted = Mapping[str, Limit]

_MOST_NAMES = 1000  # A server of names may take a millisecond for each.
FEW = 5
MOST_IN_RANGE = 200
MOST_OTHERS = 10
"""Users beside those who stand for everyone who are looked at."""


def choose_different(
    rules: Sequence[SessionRule], users: Sequence[str], files: SessionsRead
) -> Different:
    """Return users whom the rules mean, and to whom lines of limits files state something else.

    :param users: Whose sessions are opened anyhow.
    """
    known = [user for user in map(read_user, users) if user]
    people = People(_find, _list_members, lambda domain: _list_in_range(domain, files))
    return compare_users(rules, known, people, files)


def compare_users(
    rules: Sequence[SessionRule], known: Collection[User], people: People, files: SessionFiles
) -> Different:
    """Return those whom the rules mean and for whom other lines count than for known users."""
    items = {item for rule in rules for item in rule.limits}
    lines = [line for line in files.limits_lines if line.item in items or line.stops]
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
    return list(islice(filter(_find, [*entry.gr_mem, *primary]), FEW))


def _list_in_range(domain: str, files: SessionsRead) -> list[str]:
    """Return some users whom a range of numbers means."""
    people = filter(None, map(_find, pick_users(MOST_IN_RANGE)))
    meant = [user for user in people if rank_domain(domain, user, files.dialect) is not None]
    return [user.name for user in meant[:FEW]]


class Different(NamedTuple):
    """Users of whom each stands for those whose limits the same lines decide.

    ``short``: those to whom the files state too little; ``enough``: the others. ``left_out``: how
    many names of the files nobody looked up.
    """

    short: tuple[str, ...] = ()
    enough: tuple[str, ...] = ()
    left_out: int = 0

    def list_untold(self) -> list[str]:
        """Return of whom nothing is found out, where no more than ``MOST_OTHERS`` are looked at."""
        reasons, left = [], len(self.short) - MOST_OTHERS
        if left > 0:
            reasons.append(f"lines of limits files state less for {left} more kinds of users")
        if self.left_out:
            reasons.append(f"{self.left_out} more users that limits files name were not looked up")
        return reasons


class People(NamedTuple):
    """How a host's users are found, as far as lines name them."""

    find: Callable[[str], User | None]
    of_group: Callable[[str], Sequence[str]]
    of_range: Callable[[str], Sequence[str]]


def find_different(
    lines: Sequence[LimitsLine],
    known: Collection[User],
    find_wanted: Callable[[User], Wanted],
    people: People,
    dialect: Dialect,
    most: int,
) -> Different:
    """Return those for whom other lines count than for users that are known.

    :param known: Whose sessions are opened anyhow.
    :param find_wanted: Returns what the policy asks for a user; nothing for those it is not about.
    :param most: How many names are looked up.
    """
    domains = list(dict.fromkeys(line.domain for line in lines))
    names = list(dict.fromkeys(name for one in domains for name in _list_names(one, people)))
    names = [name for name in names if name not in {user.name for user in known}]
    by_domain = _sort_lines(lines)
    seen = {_sign(_resolve(user, by_domain, dialect)) for user in known}
    found: dict[bool, list[str]] = {True: [], False: []}
    for name in names[:most]:
        user = people.find(name)
        wanted = find_wanted(user) if user else {}
        if not user or not wanted:
            continue
        resolution = _resolve(user, by_domain, dialect)
        sign = _sign(resolution)
        if sign not in seen:
            seen.add(sign)
            found[_falls_short(resolution, wanted)].append(name)
    return Different(tuple(found[True]), tuple(found[False]), max(0, len(names) - most))


def _list_names(domain: str, people: People) -> Sequence[str]:
    """Return users of a line: a name, some of a group, some of a range of numbers."""
    if domain.startswith("%") or domain == "*":
        return ()
    if ":" in domain:
        return people.of_range(domain)
    return people.of_group(domain[1:]) if domain.startswith("@") else (domain,)


class _Lines(NamedTuple):
    """Lines by the one user that they name, and those that may be about several."""

    of_user: Mapping[str, list[tuple[int, LimitsLine]]]
    of_many: list[tuple[int, LimitsLine]]


def _sort_lines(lines: Sequence[LimitsLine]) -> _Lines:
    of_user: dict[str, list[tuple[int, LimitsLine]]] = {}
    of_many: list[tuple[int, LimitsLine]] = []
    for entry in enumerate(lines):
        domain = entry[1].domain
        many = domain == "*" or domain[0] in "@%" or ":" in domain
        (of_many if many else of_user.setdefault(domain, [])).append(entry)
    return _Lines(of_user, of_many)


def _resolve(user: User, lines: _Lines, dialect: Dialect) -> Resolution:
    about = sorted([*lines.of_user.get(user.name, ()), *lines.of_many])
    return resolve_limits([line for _number, line in about], user, dialect)


def _sign(resolution: Resolution) -> tuple[object, ...]:
    """Return what tells those apart to whom the lines that count state something else."""
    stated = ((*key, int(bound.winner.value)) for key, bound in resolution.bounds.items())
    return (bool(resolution.stopped_by), *sorted(stated))


def _falls_short(resolution: Resolution, wanted: Wanted) -> bool:
    """Tell whether some limit is stated too low, or not at all, or taken away."""
    for item, limit in wanted.items():
        for kind, least in (("soft", limit.soft), ("hard", limit.hard)):
            own, top = (resolution.bounds.get((item, one)) for one in (kind, "hard"))
            values = [int(one.winner.value) for one in (own, top) if one]  # A hard one takes both.
            if least is not None and (own is None or min(values) < least):
                return True
    return False
