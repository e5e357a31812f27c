# SPDX-License-Identifier: BSD-2-Clause
"""All that decides the limits of one session, and what follows from it."""

from __future__ import annotations

from ..core.distribution import Dialect
from ..core.reader import Limit
from ..core.values import NamedTuple, Rlimit, User
from .limits_conf import LimitsLine
from .model import Start, find_refused, predict_limits
from .pam_limits import Resolution, resolve_limits
from .reach import Hindrance
from .soft_reset import SoftReset, apply_reset
from .unread import Unread


class SessionFacts(NamedTuple):
    """All that decides the limits of one user's session through one service.

    ``lines`` are those that pam_limits reads, in its order. ``hindrances`` say why it does not
    run, or reads something else. ``unread`` are entries of files that it skips.
    ``domain`` is for whom a remedy states a limit; the user alone where it is empty. ``asked`` is
    what the policy asks of both bounds of it.
    ``reset`` is what SELinux takes of it before the shell runs. ``is_fatal``: whether no session
    opens where pam_limits fails.
    ``nr_open_at_boot`` is fs.nr_open as a boot will have it, 0 where that is not known.
    """

    user: User
    dialect: Dialect
    lines: tuple[LimitsLine, ...]
    start: Start
    hindrances: tuple[Hindrance, ...] = ()
    unread: tuple[Unread, ...] = ()
    nr_open_at_boot: int = 0
    domain: str = ""
    asked: Limit | None = None
    reset: SoftReset | None = None
    is_fatal: bool = True

    @property
    def ends(self) -> bool:
        """Tell whether a limit that the kernel refuses ends the session."""
        return self.is_fatal and self.dialect.ends_sessions

    @property
    def resolution(self) -> Resolution:
        lines = self.lines
        if self.hindrances:
            lines = self.hindrances[0].lines or ()
        return resolve_limits(list(lines), self.user, self.dialect, self.start.nr_open)


def predict_session(facts: SessionFacts) -> dict[str, Rlimit]:
    """Return the limits that the session will have."""
    if facts.hindrances and facts.hindrances[0].lines is None:
        return apply_reset(facts.start.inherited, facts.reset)
    return apply_reset(predict_limits(facts.resolution, facts.start), facts.reset)


def find_ending(facts: SessionFacts) -> str | None:
    """Return the item for which the kernel refuses what is stated, and PAM the session."""
    if not facts.ends or any(one.lines is None for one in facts.hindrances[:1]):
        return None
    return find_refused(facts.resolution, facts.start)
