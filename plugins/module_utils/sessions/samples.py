# SPDX-License-Identifier: BSD-2-Clause
"""Find the users to whom limits files give something else than to the one who stands for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ..core.distribution import Dialect
from ..core.named import NamedTuple
from ..core.user import User
from .limits_conf import LimitsLine
from .pam_limits import Resolution, resolve_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit

    Wanted = Mapping[str, Limit]


class Different(NamedTuple):
    """Users of whom each stands for those whose limits the same lines decide.

    ``short``: those to whom the files state too little; ``enough``: the others. ``left_out``: how
    many names of the files nobody looked up.
    """

    short: tuple[str, ...] = ()
    enough: tuple[str, ...] = ()
    left_out: int = 0


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
            bound = resolution.bounds.get((item, kind))
            if least is not None and (bound is None or int(bound.winner.value) < least):
                return True
    return False
