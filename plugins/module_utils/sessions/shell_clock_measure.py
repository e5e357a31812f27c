# SPDX-License-Identifier: BSD-2-Clause
"""Share the time of one look among the users whose files and shells it starts."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from ..host.as_user import Errand, Errands
from ..host.children import Report
from .shell_measure import NOBODY

TIME_LIMIT = 10.0
"""Seconds that one user has of a look, for whatever is asked of them."""

_OF_ALL = 25.0  # Seconds of all users, so that what comes after it has time in any limit.
_AT_ONCE = 16
_OURS = (0, NOBODY)
NOT_ASKED = "not asked: the shells of other users took the time that there is for all"
_OVER = f"no answer within the {TIME_LIMIT:g} s that a user has"


class ShellClock:
    """The time that users' shells may take of one look, whoever asks.

    Each user has a time of their own, which runs while anything of theirs does, and all have one
    together. A free place goes to who has the fewest; so that who stalls stalls nobody else.
    Root's own and nobody's, of which no user has a say, take none of it.
    """

    def __init__(self, seconds: float = _OF_ALL) -> None:
        self.left = seconds
        self.used: defaultdict[int, float] = defaultdict(float)
        self.told: dict[object, Any] = {}

    def ask(self, errands: Sequence[Errand]) -> list[Report | None]:
        """Do errands, many at once, and return in order what each tells; ``None``: not asked.

        Whose own time is over is late; who had none because of others was not asked.
        """
        are_ours = [one.person.pw_uid in _OURS for one in errands]
        reports: dict[int, Report | None] = {}
        for is_ours in (True, False):
            chosen = [at for at, one in enumerate(are_ours) if one == is_ours]
            reports.update(_Round(self, errands, chosen, is_ours).run())
        return [reports[at] for at in range(len(errands))]


class _Round:
    """Errands of one asking, done as there are places for them."""

    def __init__(
        self, clock: ShellClock, errands: Sequence[Errand], chosen: Sequence[int], is_ours: bool
    ) -> None:
        self._clock, self._errands, self._is_ours = clock, errands, is_ours
        self._waiting = list(chosen)
        self._running: Counter[int] = Counter()  # By user.
        self._since: dict[int, float] = {}  # When the first of a user's was started.
        self._cut: set[int] = set()  # Those with less time than their user has left.
        self._begun = time.monotonic()
        self._reports: dict[int, Report | None] = {}

    def run(self) -> dict[int, Report | None]:
        """Return the reports by the errands' places."""
        with Errands() as under_way:
            while self._waiting or under_way:
                while self._waiting and len(under_way) < _AT_ONCE:
                    at = min(self._waiting, key=self._rank)
                    self._waiting.remove(at)
                    self._start(at, under_way)
                for at, report in under_way.hear().items() if under_way else ():
                    self._end(at, report)
        if not self._is_ours:
            self._clock.left -= time.monotonic() - self._begun
        return self._reports

    def _rank(self, at: int) -> tuple[int, float, int]:
        uid = self._errands[at].person.pw_uid
        return self._running[uid], self._clock.used[uid], at

    def _start(self, at: int, under_way: Errands) -> None:
        """Start an errand, unless there is no time for it."""
        uid, now = self._errands[at].person.pw_uid, time.monotonic()
        since = self._since.get(uid, now)
        own = TIME_LIMIT if self._is_ours else TIME_LIMIT - self._clock.used[uid] - (now - since)
        of_all = own if self._is_ours else self._clock.left - (now - self._begun)
        if own <= 0:
            self._reports[at] = Report(None, _OVER, late=True)
        elif of_all <= 0:
            self._reports[at] = None
        else:
            self._running[uid] += 1
            self._since[uid] = since
            self._cut |= {at} if of_all < own else set()
            under_way.start(at, self._errands[at]._replace(seconds=min(own, of_all)))

    def _end(self, at: int, report: Report) -> None:
        """Take note of what an errand told, and of the time of its user."""
        uid, now = self._errands[at].person.pw_uid, time.monotonic()
        self._running[uid] -= 1
        if not self._running[uid]:
            self._clock.used[uid] += now - self._since.pop(uid)
        self._reports[at] = None if report.late and at in self._cut else report
