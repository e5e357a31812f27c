# SPDX-License-Identifier: BSD-2-Clause
"""What is asked of one limit of a unit: what is enough, and how it is stated."""

from __future__ import annotations

from ..core.reader import Limit
from ..core.values import UNLIMITED, Declaration, NamedTuple, Rlimit
from .edits import is_ours, rewrite, state
from .limits import Statement
from .unread import format_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.cause import Remedy
    from .model import UnitFacts


class Asked(NamedTuple):
    """One limit that a policy asks for."""

    item: str
    limit: Limit


def is_enough(limit: Limit, given: Rlimit) -> bool:
    """Tell whether a pair of bounds is what a policy asks for."""
    low_soft, low_hard, high = limit.soft or 0, limit.hard or 0, limit.max
    most = UNLIMITED if high is None else high
    return given.soft >= low_soft and low_hard <= given.hard <= most


def find_target(limit: Limit, given: Rlimit) -> Rlimit:
    """Return what meets a policy and changes what is given least."""
    most = UNLIMITED if limit.max is None else limit.max
    soft = max(given.soft, limit.soft or 0)
    hard = min(max(given.hard, limit.hard or 0, limit.soft or 0), most)
    return Rlimit(min(soft, hard), hard)


def declare(statement: Statement) -> Declaration:
    """Return a statement as a line of a file."""
    return statement.setting.declare(format_limit(statement.item, statement.limit))


def is_default(statement: Statement) -> bool:
    return statement.setting.key.startswith("Default")


def write_limit(text: str, ranked: list[Statement], facts: UnitFacts) -> tuple[Remedy, UnitFacts]:
    """Write a line over the one that counts, or in a drop-in where that is not ours to change."""
    if ranked and is_ours(ranked[-1].setting.path) and not is_default(ranked[-1]):
        return rewrite(declare(ranked[-1]), text, facts)
    return state(text, facts)
