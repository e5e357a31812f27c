# SPDX-License-Identifier: BSD-2-Clause
"""Look at a run again and again for a small share of a core: often where something grows.

A thread of its own looks, so that nothing that keeps it waiting keeps the run's end waiting.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from ..processes.read import find_ancestors
from .events_read import Events, Heard
from .tree_read import (
    Groups,
    Member,
    Tree,
    count_kills,
    read_host,
    read_mappings,
    read_shared_memory,
    read_users,
)
from .trends import End, History, Level, Rise, Trend

_SOON = 60.0

_SHORTEST, _LONGEST, _SLOWEST = 0.02, 2.0, 30.0
_GROWTH = 1.15
"""By so much each rest is longer than the one before, while nothing happens."""

_PARTS = 12
"""Looks that are made in the time after which a limit is full."""

_YOUNG = 3.0
_SHARE_OF_MAPPINGS = 0.0005
_LEAST_REST, _STEPS, _BURST, _BEGIN = 0.1, 4, 1, 0.05
"""Seconds between two counts of mappings; looks in the time that is left; rests in costs, while it
is near; from which share on a rise counts."""

_MOST_HOT, _SLICE = 24, 12
_SELDOM = 4
_RING = 600.0
"""Seconds for which it is kept what was seen of processes that have ended."""

_MOST_ENDS = 256


class Sampler:
    """What looks at one run.

    ``SHARE`` is what all looks take of a core in the long run, ``CREDIT`` how many seconds of one
    they may take beside before that is earned again, and ``RESERVE`` how much of these is kept for
    a limit that is nearly reached. For ``PAUSE`` seconds nobody listens after a counter was heard.
    """

    SHARE, CREDIT, RESERVE, PAUSE = 0.0015, 1.5, 1.25, 0.0

    def __init__(
        self, root: Member, tell: Callable[[Trend], None], ours: Iterable[int] = ()
    ) -> None:
        """Begin with what is known.

        :param root: The process that all others descend from, by its number and name.
        :param ours: Processes that only serve to watch.
        """
        self.root = root
        self.tree, self.groups, self.history = Tree(root.pid), Groups(), History()
        self.ends: deque[End] = deque(maxlen=_MOST_ENDS)
        self.rises: deque[Rise] = deque(maxlen=_MOST_ENDS)
        self.shared: set[str] = set()
        self._ours = {os.getpid(), *ours, *(one.pid for one in find_ancestors(os.getpid()))}
        self.began = time.monotonic()
        self.kills_first, self.kills_last = count_kills(), 0
        self.looks, self.spent = 0, 0.0
        self._tell = tell
        self._clock = time.thread_time
        self._met: dict[int, float] = {}
        self._known: dict[int, Member] = {}
        self._counters: dict[str, int] = {}
        self._hot: list[int] = []
        self._due: dict[int, float] = {}
        self._at, self._rest = 0, _SHORTEST
        self._earned, self._age = self.CREDIT, 0.0
        self._wake, self._awake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._events = Events(self._wake)
        self._is_over = False
        self._thread = threading.Thread(target=self._watch, name="mlhost-watch", daemon=True)

    def start(self) -> None:
        """Begin to look.

        :raises RuntimeError: If no thread can be started.
        """
        self._thread.start()

    def stop(self, patience: float) -> None:
        """Look once more, and end."""
        self._is_over = True
        os.write(self._awake, b"x")
        self._thread.join(patience)

    def _watch(self) -> None:
        heard, begin = Heard(), self._clock()
        while True:
            is_last = self._is_over
            with suppress(OSError, ValueError, LookupError, MemoryError, RuntimeError):
                self._look(heard)
            if is_last:
                return
            now = self._clock()
            cost, begin = now - begin, now
            self.looks, self.spent = self.looks + 1, now
            heard = self._wait(self._choose_rest(cost, heard))

    def _wait(self, rest: float) -> Heard:
        """Return what was heard until the next look, which comes early where there is room for it.

        However many processes end meanwhile, and however much is counted, it costs no look each.
        """
        end, heard = time.monotonic() + rest, Heard()
        while not heard.is_woken:
            new = self._events.wait(end - time.monotonic())
            for pid, status in new.ended:
                self._note_end(pid, status, time.monotonic())
            heard = Heard(
                heard.has_counted or new.has_counted,
                is_pressed=heard.is_pressed or new.is_pressed,
                is_woken=new.is_woken,
                counted_at=time.monotonic() if new.has_counted else heard.counted_at,
            )
            if new.has_counted and self.PAUSE:  # Whose the cgroup is can have it told without end.
                time.sleep(min(self.PAUSE, max(end - time.monotonic(), 0.0)))
            may_come = self._earned > self.RESERVE and (heard.has_counted or heard.is_pressed)
            if may_come or time.monotonic() >= end:
                break
        return heard

    def _choose_rest(self, cost: float, heard: Heard) -> float:
        """Return how long nobody looks: a credit is spent where something grows or begins."""
        age = time.monotonic() - self.began
        self._earned = min(self._earned + (age - self._age) * self.SHARE, self.CREDIT) - cost
        self._age = age
        soonest = self._find_soonest()
        if heard.is_pressed or heard.has_counted:
            self._rest = _SHORTEST
        wanted = self._rest = min(max(self._rest * _GROWTH, _SHORTEST), _LONGEST)
        if soonest is not None:
            wanted = min(max(soonest / _PARTS, _SHORTEST), wanted)
        kept = 0.0 if soonest is not None and soonest < _SOON else self.RESERVE
        if self._earned - kept < cost:
            return min(max(wanted, cost / self.SHARE), _SLOWEST)
        return wanted

    def _find_soonest(self) -> float | None:
        """Return after how many seconds the first limit may be full."""
        return self.history.find_soonest()

    def _look(self, heard: Heard) -> None:
        now = time.monotonic()
        self._meet(now)
        if heard.has_counted or self._is_over or self.looks % _SELDOM == 0:
            self._count(heard.counted_at or now)
        for level in self._read(now):
            if self._must_follow(level):
                trend = self.history.follow(level, now)
                if trend.must_tell():
                    self._tell(trend)
        if self.looks % _SELDOM == 0:
            self.history.forget(now, _RING)

    def _must_follow(self, _level: Level) -> bool:
        return True

    def _meet(self, now: float) -> None:
        new, gone = self.tree.find()
        for member in gone:
            self._note_end(member.pid, None, now)
        for member in new:
            self.root = member if member.pid == self.root.pid else self.root
            self._met[member.pid] = now
            self._known[member.pid] = member
            self._begin_with(member)
        if new or self.looks % _SELDOM == 0:
            self.groups.find({one.cgroup for one in self.tree.members.values()})
            self._events.watch_files(self.groups.watched)

    def _begin_with(self, member: Member) -> None:
        self._events.watch_end(member.pid)

    def _note_end(self, pid: int, status: int | None, now: float) -> None:
        member = self._forget(pid)
        if member:
            self.ends.append(self.describe_end(member, status, now))

    def _forget(self, pid: int) -> Member | None:
        self._met.pop(pid, None)
        self._due.pop(pid, None)
        self.history.end(pid)
        return self._known.pop(pid, None)

    def describe_end(self, member: Member, status: int | None, now: float) -> End:
        """Return what is known of a process that has ended."""
        folders = self.groups.list_folders(member.cgroup)
        fsize, cpu = member.limits["fsize"].soft, member.limits["cpu"].hard
        return End(now, member.pid, member.comm, folders, status, fsize, cpu)

    def _count(self, now: float) -> None:
        """Note which counters of the cgroups have risen."""
        for path, total in self.groups.read_counters().items():
            by = total - self._counters.get(path, 0)
            if by > 0:
                self.rises.append(Rise(now, path, by))
            self._counters[path] = total
        self.shared |= self.groups.find_shared(self._known.keys() | self._ours)
        kills = count_kills()
        if kills is not None and self.kills_first is not None:
            self.kills_last = kills - self.kills_first

    def _read(self, now: float) -> Iterator[Level]:
        members = self._choose(now)
        for member in members:
            is_young = now - self._met.get(member.pid, now) < _YOUNG
            with suppress(OSError, ValueError, KeyError, IndexError):
                if is_young or self.looks % _SELDOM == 0:
                    self.tree.refresh(member)
                yield from self.tree.read_levels(member)
        yield from self._read_mappings(members)
        yield from self._read_places(members)
        if self.looks % _SELDOM == 0 or self._is_near():
            yield from self._read_users()
            yield from read_host()
        self._heat()

    def _read_places(self, members: Sequence[Member]) -> Iterator[Level]:
        """Yield what is taken of the bounds of places where processes live."""
        yield from self.groups.read_levels()
        if members:
            yield from read_shared_memory(members[0])

    def _read_users(self) -> Iterator[Level]:
        return read_users(self.tree.members.values())

    def _read_mappings(self, members: Iterable[Member]) -> Iterator[Level]:
        """Yield how many mappings there are, of whom that is due: to count many takes long.

        It is due in a part of the time after which it may be full, and else for a small share.
        """
        for member in members:
            begin = time.monotonic()
            if self._due.get(member.pid, 0.0) > begin:
                continue
            cost = self._clock()
            level = self._count_mappings(member)
            cost = self._clock() - cost
            rest = max(cost / self._share_of_mappings(), _LEAST_REST)
            if level:
                yield level
                trend = self.history.trends.get(level.key)
                left = trend.left if trend else None
                if left is not None and level.share >= _BEGIN:
                    rest = min(rest, max(left / _STEPS, cost * _BURST))
            self._due[member.pid] = begin + rest

    def _count_mappings(self, member: Member) -> Level | None:
        return read_mappings(member)

    def _share_of_mappings(self) -> float:
        return _SHARE_OF_MAPPINGS

    def _is_near(self) -> bool:
        """Tell whether something that is seldom read comes near its limit."""
        seldom = ("nproc", "threads-max", "file-max", "host-memory")
        return any(one.level.code in seldom for one in self.history.near)

    def _choose(self, now: float) -> list[Member]:
        """Return whom to look at: who is near a limit or young, and the next few of the others."""
        members = self.tree.members
        young = [pid for pid, met in self._met.items() if now - met < _YOUNG][:_SLICE]
        others = sorted(members)
        at = self._at % max(len(others), 1)
        turn = (others[at:] + others[:at])[:_SLICE]
        self._at = at + len(turn)
        pids = dict.fromkeys([*self._hot, *young, *turn])
        return [members[pid] for pid in pids if pid in members]

    def _heat(self) -> None:
        """Note whom to look at each time."""
        near = [
            (one.level.share, one.level.pid)
            for one in self.history.near
            if one.level.pid in self._met
        ]
        self._hot = [pid for _share, pid in sorted(near, reverse=True)[:_MOST_HOT]]
