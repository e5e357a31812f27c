# SPDX-License-Identifier: BSD-2-Clause
"""Of very many lines of limits.conf(5), keep those that can decide something for one user.

What explains a session predicts it again and again, and each time reads every line.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.distribution import Dialect
from ..core.values import ITEMS, User
from .limits_conf import LimitsLine, parse_value
from .pam_limits import rank_domain, stops_for

FEW = 2000
"""Lines that are all kept: more than any host of people states."""
_NEAR = 20  # First and last of one kind; twelve causes are found at most.


class _Kind:
    """The lines that compete in the same way: the first, the last, and those of extreme value."""

    def __init__(self) -> None:
        self.first: list[int] = []
        self.last: list[int] = []
        self.least = self.most = (-1, -1)

    def put(self, number: int, value: int | None) -> None:
        """Take one more line."""
        if len(self.first) < _NEAR:
            self.first.append(number)
        self.last.append(number)
        if len(self.last) > 2 * _NEAR:
            del self.last[:_NEAR]
        if value is not None and (self.most[1] < 0 or value >= self.most[0]):
            self.most = (value, number)
        if value is not None and (self.least[1] < 0 or value <= self.least[0]):
            self.least = (value, number)

    @property
    def kept(self) -> set[int]:
        """Return the numbers of what is kept."""
        return {*self.first, *self.last, self.least[1], self.most[1]} - {-1}


def keep_rivals(
    lines: Sequence[LimitsLine], user: User, dialect: Dialect, few: int = FEW
) -> tuple[LimitsLine, ...]:
    """Return the lines from which every session of a user is predicted as from all of them.

    Each bound is won by a line of the strongest rank, the last of them; and whether a ``-`` line
    loses depends on whether a stronger one stands before it.
    """
    if len(lines) <= few:
        return tuple(lines)
    kinds: dict[object, _Kind] = {}
    everyone = dialect._replace(wildcard_root=True)
    for number, line in enumerate(lines):
        rank = rank_domain(line.domain, user, everyone)
        if stops_for(line, user):
            kinds.setdefault("stops", _Kind()).put(number, None)
        elif rank is not None and len(line.fields) == 4 and line.item in ITEMS:
            own = rank_domain(line.domain, user, dialect)
            value = parse_value(line.item, line.fields[3])
            kind = (line.item, line.types, rank, own, value is None)
            kinds.setdefault(kind, _Kind()).put(number, value)
    kept = {number for kind in kinds.values() for number in kind.kept}
    return tuple(lines[number] for number in sorted(kept))
