# SPDX-License-Identifier: BSD-2-Clause
"""All that decides the limits of one session, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.distribution import Dialect
from ..core.reader import Limit
from ..core.values import Declaration, NamedTuple, Rlimit, User
from .limits_conf import LimitsLine
from .model import Start, find_refused, predict_limits
from .pam_limits import LOGINS, Resolution, resolve_limits, resolve_settings
from .reach import EarlierCall, Hindrance
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
    ``earlier`` are the calls of pam_limits before the last, if they read other files.
    ``nr_open_at_boot`` is fs.nr_open as a boot will have it, 0 where that is not known, and
    ``nr_open_line`` what states it.
    """

    user: User
    dialect: Dialect
    lines: tuple[LimitsLine, ...]
    start: Start
    hindrances: tuple[Hindrance, ...] = ()
    unread: tuple[Unread, ...] = ()
    nr_open_at_boot: int = 0
    nr_open_line: Declaration | None = None
    domain: str = ""
    asked: Limit | None = None
    reset: SoftReset | None = None
    is_fatal: bool = True
    earlier: tuple[EarlierCall, ...] = ()

    @property
    def ends(self) -> bool:
        """Tell whether a limit that the kernel refuses ends the session."""
        return self.is_fatal and self.dialect.ends_sessions

    @property
    def counted(self) -> Sequence[LimitsLine]:
        """Return the lines that pam_limits does read."""
        return (self.hindrances[0].lines or ()) if self.hindrances else self.lines

    @property
    def resolution(self) -> Resolution:
        return self.resolve(self.counted)

    def resolve(self, lines: Sequence[LimitsLine]) -> Resolution:
        """Return what lines state for the user."""
        return resolve_limits(list(lines), self.user, self.dialect, self.start.nr_open)

    @property
    def is_closed(self) -> bool:
        """Tell whether no session opens, whatever the limits files state."""
        return bool(self.hindrances) and self.hindrances[0].ends

    @property
    def last_start(self) -> Start:
        """Return what the last call of pam_limits starts from: what those before it left."""
        start = self.start
        for resolution, _is_fatal in self.list_earlier():
            start = start._replace(inherited=predict_limits(resolution, start))
        return start

    def list_earlier(self) -> list[tuple[Resolution, bool]]:
        """Return what earlier calls state, and whether no session opens where one fails."""
        if self.hindrances and self.hindrances[0].bypasses:
            return []
        read = [self.lines if one.lines is None else one.lines for one in self.earlier]
        return [(self.resolve(lines), one.is_fatal) for lines, one in zip(read, self.earlier)]


def predict_session(facts: SessionFacts) -> dict[str, Rlimit]:
    """Return the limits that the session will have."""
    if facts.hindrances and facts.hindrances[0].lines is None:
        return apply_reset(facts.last_start.inherited, facts.reset)
    return apply_reset(predict_limits(facts.resolution, facts.last_start), facts.reset)


def find_ending(facts: SessionFacts) -> str | None:
    """Return the item for which the kernel refuses what is stated, and PAM the session."""
    if not facts.ends or any(one.lines is None for one in facts.hindrances[:1]):
        return None
    return find_refused(facts.resolution, facts.last_start)


def find_login_bar(facts: SessionFacts) -> Declaration | None:
    """Return the line that lets the user have no login at all; root is exempt."""
    if facts.user.uid == 0:
        return None
    settings = resolve_settings(list(facts.counted), facts.user, facts.dialect)
    found = (settings[item].winner for item in LOGINS if item in settings)
    return next((one for one in found if one.value == 0), None)


def find_early_ending(facts: SessionFacts) -> Declaration | None:
    """Return the line of another file for which the kernel refuses what it states."""
    start = facts.start
    for resolution, is_fatal in facts.list_earlier() if facts.dialect.ends_sessions else ():
        item = find_refused(resolution, start)
        if item and is_fatal:
            return resolution.bounds[item, "hard"].winner
        start = start._replace(inherited=predict_limits(resolution, start))
    return None
