# SPDX-License-Identifier: BSD-2-Clause
"""Look at all processes of a host, a few at a time, and hear of each that ends in failure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from threading import Thread

from ..core.values import NamedTuple
from ..shared_memory.model import SHM
from ..why.reasons import MAPPINGS
from .ends_read import Ends
from .events_read import Heard
from .everyone_read import Everyone, read_last, sum_users
from .sampler_read import Sampler
from .tree_read import (
    Member,
    count_kills,
    read_mappings,
    read_mounts_of,
    read_rows,
    read_shared_memory,
)
from .trends import End, Level, Trend

_WORTH, _WORTH_OF_MAPPINGS = 0.3, 0.03
"""Share of a limit from which on it is followed: of most, hosts are far from any. To count mappings
takes the longer the more there are, so that it has to be known early how fast they grow."""

_SLICE = 12
_BEGIN = 0.1
_SELDOM = 64
_NEW, _MAY_BE = 3.0, 6.0
"""Seconds for which what comes near a limit is new, and after which it may be full."""

_MOST_WAITING = 64
"""Of one user: who dies by the thousand crowds out nobody else."""

_QUIET, _LONGEST = 3.0, 30.0
"""Seconds without another end in a cgroup after which its run is over; and the most to wait."""

_PATIENCE = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Death(NamedTuple):
    """A process that ended in failure, what it was, since when it lived, how often anybody looked
    meanwhile, and its mount namespace."""

    end: End
    member: Member
    began: float
    looks: int
    mounts: int


class HostSampler(Sampler):
    """What looks at a host. Whoever calls it waits for ever, so there is no thread."""

    SHARE, CREDIT, RESERVE, PAUSE = 0.002, 6.0, 5.0, 0.5

    def __init__(
        self,
        tell: Callable[[Trend], None],
        conclude: Callable[[Sequence[Death]], None],
        after: Callable[[], None],
    ) -> None:
        """Begin to hear.

        :param conclude: Is called with the processes of a cgroup that ended one after another.
        :param after: Is called after each look.
        :raises OSError: If the kernel does not tell how processes end.
        """
        self._listener = Ends()
        super().__init__(Member(1, "", 0), tell)
        self.tree: Everyone = Everyone()
        self._clock = time.process_time
        self._conclude, self._after = conclude, after
        self._dying: dict[int, list[Death]] = {}
        self._mounts: dict[int, int] = {}
        self._looks_at: dict[int, int] = {}
        self._turn = 0
        self._stalls: set[int] = set()

    def run(self) -> None:
        """Look until the process ends."""
        self._watch()

    def _look(self, heard: Heard) -> None:
        super()._look(heard)
        now = time.monotonic()
        for deaths in [one for each in self._dying.values() for one in part(each)]:
            if now - deaths[-1].end.at > _QUIET or now - deaths[0].end.at > _LONGEST:
                self._let_go(deaths)
                self._conclude(deaths)
        if self.looks % _SELDOM == 0:
            self.groups.forget({one.cgroup for one in self._known.values()})
            self._counters = {path: self._counters.get(path, 0) for path in self.groups.watched}
        self._after()

    def _let_go(self, deaths: Sequence[Death]) -> None:
        uid = deaths[0].member.uid
        self._dying[uid] = [one for one in self._dying[uid] if one not in deaths]
        if not self._dying[uid]:
            del self._dying[uid]

    def _meet(self, now: float) -> None:
        heard = sorted(self._listener.read())
        again = self.tree.list_again(read_last())
        for ended in heard:  # Of a number that was given out twice nobody knows who ended.
            self._note_end(ended.pid, None if ended.pid in again else ended.status, ended.at)
        super()._meet(now)

    def _begin_with(self, member: Member) -> None:
        self._looks_at[member.pid] = self.looks
        self._rest = min(self._rest, _BEGIN)  # Who dies young is seen, while there is credit.
        with suppress(OSError, KeyError):
            read_rows(member)

    def _note_end(self, pid: int, status: int | None, now: float) -> None:
        began = self._met.get(pid, now)
        member, looks = self._forget(pid), self._looks_at.pop(pid, self.looks)
        mounts = self._mounts.pop(pid, 0)
        self.tree.members.pop(pid, None)
        if member and status:
            began = min(began, member.start / _TICKS)
            end = self.describe_end(member, status, now)
            of_user = self._dying.setdefault(member.uid, [])
            of_user.append(Death(end, member, began, self.looks - looks, mounts))
            del of_user[:-_MOST_WAITING]

    def _count(self, now: float) -> None:
        super()._count(now)
        self.shared = set()  # All who live here are known.

    def _find_soonest(self) -> float | None:
        """Return that soon, too, for what was just met on its way, since nobody knows yet how fast
        it goes, and a little later where somebody died."""
        soonest, now = super()._find_soonest(), time.monotonic()
        if self._dying:
            soonest = min(soonest or _LONGEST, _LONGEST)
        if any(now - one.points[0][0] < _NEW for one in self.history.near):
            return min(soonest or _MAY_BE, _MAY_BE)
        return soonest

    def _must_follow(self, level: Level) -> bool:
        least = _WORTH_OF_MAPPINGS if level.code == MAPPINGS else _WORTH
        return level.share >= least or level.key in self.history.trends

    def _read_places(self, members: Sequence[Member]) -> Iterator[Level]:
        """Yield what is taken of the bounds of those places whose turn it is, and of the near."""
        bound = self.groups.bound
        hot = [one.level.who for one in self.history.near if one.level.who in bound]
        at = self._turn % max(len(bound), 1)
        turn = (bound[at:] + bound[:at])[:_SLICE]
        self._turn = at + len(turn)
        yield from self.groups.read_levels(dict.fromkeys([*hot, *turn]))
        places = {}
        for member in members:
            with suppress(OSError):
                mounts = self._mounts[member.pid] = read_mounts_of(member.pid)
                places[mounts] = member
        for mounts, member in places.items():
            for level in read_shared_memory(member):
                yield level._replace(who=_name_shm(mounts), pid=0)

    def _read_users(self) -> Iterator[Level]:
        return sum_users(self.tree.members.values())

    def _count_mappings(self, member: Member) -> Level | None:
        """Count in a thread that may stay behind: whoever has a file system of their own can keep
        waiting whoever reads what their process has mapped. Of such a user nobody counts again."""
        found: list[Level | None] = []
        if member.uid not in self._stalls:
            reader = Thread(target=lambda: found.append(read_mappings(member)), daemon=True)
            try:
                reader.start()
            except RuntimeError:
                return None  # The host, or this service, has no task left.
            reader.join(_PATIENCE)
            if reader.is_alive():
                self._stalls.add(member.uid)
        return found[0] if found else None

    def _share_of_mappings(self) -> float:
        return super()._share_of_mappings() * _SLICE / max(len(self._known), _SLICE)

    def count_kills(self) -> int | None:
        """Return how many processes the kernel has killed for memory since this began."""
        kills = count_kills()
        return None if kills is None or self.kills_first is None else kills - self.kills_first

    def list_own(self, deaths: Sequence[Death]) -> list[Trend]:
        """Return the limits that bound some processes, of those of which half or more was taken."""
        pids = {one.member.pid for one in deaths}
        own = {f"user {one.member.uid}" for one in deaths} | {"the host"}
        own |= {folder for one in deaths for folder in one.end.folders}
        own |= {_name_shm(one.mounts) for one in deaths}
        near = self.history.list_near()
        return [one for one in near if one.level.pid in pids or one.level.who in own]


def _name_shm(mounts: int) -> str:
    """Return what names the /dev/shm that a process sees, as lsns(8) names its mounts."""
    return f"{SHM} of mnt:[{mounts}]"


def part(deaths: Sequence[Death]) -> list[list[Death]]:
    """Return the processes of a user that ended, those of each run together: of one cgroup, and
    one process group or the children of one another."""
    runs: list[list[Death]] = []
    for death in deaths:
        own = [run for run in runs if any(_belong(death.member, one.member) for one in run)]
        runs = [run for run in runs if run not in own]
        runs.append([*(one for run in own for one in run), death])
    return runs


def _belong(one: Member, other: Member) -> bool:
    is_near = one.parent == other.pid or other.parent == one.pid or one.group == other.group
    return one.cgroup == other.cgroup and is_near
