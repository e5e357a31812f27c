# SPDX-License-Identifier: BSD-2-Clause
"""What a run takes of each limit over some minutes: how fast it grows, and when it is at an end."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.values import UNLIMITED, NamedTuple
from ..why.reasons import (
    CGROUP,
    FILE_MAX,
    HOST,
    MAPPINGS,
    MEMLOCK,
    NOFILE,
    NPROC,
    PIDS,
    SHM,
    SPACE,
    THREADS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    Key = tuple[str, str, str]

STACK, CPU, FSIZE = "stack", "cpu-time", "fsize"
COUNTED = (NOFILE, MAPPINGS, NPROC, PIDS, THREADS, FILE_MAX)
"""Reasons whose limits are numbers of things; all others are bytes, and time in milliseconds."""

SIZED = (MEMLOCK, SPACE, SHM, CGROUP, HOST, STACK)
NEAR, TOLD = 0.5, 0.8
"""Shares of a limit: from one on it is told of after the end, from the other while it grows."""

HORIZON = 3600.0
"""Seconds; what would be full later than that is not told."""

_FULL = {
    **dict.fromkeys((MEMLOCK, SPACE, CPU, STACK, CGROUP, HOST), 0.95),
    MAPPINGS: 0.98,
    SHM: 0.97,
}
"""Shares from which on a limit counts as reached; to count many mappings takes a while."""

_FULL_OF_REST = 0.99
_LEFT = 2
"""Things that fit in no more: a pipe, a pair of sockets and a start of a program take as many."""

_SHORTEST, _LONGEST = 0.02, 10.0
"""Seconds between two points that are kept, at least."""

_POINTS = 60
_MINUTE = 60.0
_DIP = 0.95
_GAINED, _CLIMBED = 0.02, 0.05
"""Parts of a limit that have to be gained for a rise to be one, and to be told before its end."""

_WORTH, _AGAIN = 0.3, 0.7
"""Shares from which on a rise is worth a closer look, and below which it may be told again."""
_RETURN = 5.0
"""Seconds after which what is full again is so anew."""


class End(NamedTuple):
    """A process of the run that ended. ``status`` is as wait(2) has it; ``None`` if not told.

    ``fsize`` and ``cpu`` are its limits of the size of files, and its hard limit of seconds.
    """

    at: float
    pid: int
    comm: str
    folders: tuple[str, ...]
    status: int | None
    fsize: int = UNLIMITED
    cpu: int = UNLIMITED


class Rise(NamedTuple):
    """A counter of the kernel that rose: its file, by how much, and when that was seen."""

    at: float
    path: str
    by: int


class Level(NamedTuple):
    """How much of one limit is taken. ``code`` is the reason that ends a run at it, ``who`` whose
    it is, ``pid`` the process, 0 where it is not one's. ``item`` is the limit as check names it.
    """

    code: str
    used: int
    limit: int
    who: str
    pid: int = 0
    item: str = ""

    @property
    def key(self) -> Key:
        return self.code, self.item, self.who

    @property
    def share(self) -> float:
        return self.used / self.limit if self.limit else 1.0

    @property
    def is_full(self) -> bool:
        """Tell whether one thing more may not fit."""
        full = _FULL.get(self.code, _FULL_OF_REST)
        if self.code in COUNTED:
            return self.used >= min(self.limit * full, self.limit - _LEFT)
        return self.used >= self.limit * full


class Trend:
    """One limit over time; times are seconds of a clock that only goes on."""

    __slots__ = (
        "_gap",
        "_was_full",
        "full_at",
        "full_seen",
        "is_told",
        "level",
        "peak",
        "peak_at",
        "points",
        "seen_at",
    )

    def __init__(self, level: Level, now: float) -> None:
        self.level = self.peak = level
        self.points = [(now, level.used)]
        self._gap = _SHORTEST
        self.seen_at = self.peak_at = self.full_seen = now
        self.full_at: float | None = now if level.is_full else None
        self._was_full = level.is_full
        self.is_told = False

    def follow(self, level: Level, now: float) -> None:
        """Take what was seen."""
        if level.limit != self.level.limit:
            self.points.clear()
            self.peak, self.full_at = level, None
        self.level, self.seen_at = level, now
        if level.used >= self.peak.used:
            self.peak, self.peak_at = level, now
        if level.is_full:
            is_anew = not self._was_full and now - self.full_seen > _RETURN
            if self.full_at is None or is_anew:
                self.full_at = now
            self.full_seen = now
        self._was_full = level.is_full
        if not self.points or (
            level.used != self.points[-1][1] and now - self.points[-1][0] >= self._gap
        ):
            self._keep(now, level.used)

    def _keep(self, now: float, used: int) -> None:
        """Keep a point; of a longer run they are further apart, and the first are dropped."""
        self.points.append((now, used))
        if len(self.points) > _POINTS and self._gap < _LONGEST:
            del self.points[1::2]
            self._gap *= 2
        elif len(self.points) > _POINTS:
            del self.points[0]

    @property
    def since(self) -> float | None:
        """Return since when it has grown without much of a fall; ``None`` where it has not."""
        return self._find_begin([*self.points, (self.seen_at, self.level.used)])

    @property
    def grew_since(self) -> float | None:
        """Return since when it had grown when most was taken; ``None`` where it had not."""
        before = [one for one in self.points if one[0] <= self.peak_at]
        return self._find_begin([*before, (self.peak_at, self.peak.used)])

    def _find_begin(self, points: Sequence[tuple[float, int]]) -> float | None:
        begin = points[-1]
        for point in reversed(points[:-1]):
            if point[1] * _DIP > begin[1]:
                break
            begin = min(begin, point, key=lambda one: (one[1], one[0]))
        gained = points[-1][1] - begin[1]
        return begin[0] if gained >= max(self.level.limit * _GAINED, 1) else None

    @property
    def rate(self) -> float:
        """Return by how much it grew in a second of the last minute; 0 where it did not."""
        since = self.since
        if since is None:
            return 0.0
        first = max(since, self.seen_at - _MINUTE)
        old = next((one for one in reversed(self.points) if one[0] <= first), None)
        if old is None or self.seen_at <= old[0]:
            return 0.0
        return max(self.level.used - old[1], 0) / (self.seen_at - old[0])

    @property
    def left(self) -> float | None:
        """Return after how many seconds it is full at this rate; ``None`` if it does not grow."""
        rate = self.rate
        return max(self.level.limit - self.level.used, 0) / rate if rate else None

    def must_tell(self) -> bool:
        """Tell whether somebody has to hear of it now, once: it grows, and its end is near."""
        share, left = self.level.share, self.left
        if share < _AGAIN:
            self.is_told = False
        if self.is_told or share < TOLD or left is None or left > HORIZON or not self._climbs():
            return False
        self.is_told = True
        return True

    def _climbs(self) -> bool:
        """Tell whether it grows for longer than a moment, and by more than it goes up and down."""
        since = self.since or 0.0
        first = next((used for at, used in self.points if at >= since), self.level.used)
        return self.level.used - first >= self.level.limit * _CLIMBED


class History:
    """The limits of a run, by what they are and whose. ``near`` are those worth a closer look."""

    def __init__(self) -> None:
        self.trends: dict[Key, Trend] = {}
        self._near: set[Key] = set()
        self._of: dict[int, set[Key]] = {}

    def follow(self, level: Level, now: float) -> Trend:
        key = level.key
        trend = self.trends.get(key)
        if trend is None:
            trend = self.trends[key] = Trend(level, now)
            self._of.setdefault(level.pid, set()).add(key)
        else:
            trend.follow(level, now)
        if level.share >= _WORTH:
            self._near.add(key)
        else:
            self._near.discard(key)
        return trend

    @property
    def near(self) -> list[Trend]:
        return [self.trends[key] for key in self._near]

    def end(self, pid: int) -> None:
        """Keep of a process that has ended what was near a limit, which comes no nearer."""
        for key in self._of.get(pid, set()).copy():
            self._near.discard(key)
            if self.trends[key].peak.share < NEAR:
                self._drop(key)

    def forget(self, now: float, ring: float) -> None:
        """Drop what was last seen long ago."""
        for key in [key for key, one in self.trends.items() if now - one.seen_at > ring]:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        level = self.trends.pop(key).level
        self._near.discard(key)
        keys = self._of[level.pid]
        keys.discard(key)
        if not keys:
            del self._of[level.pid]

    def list_near(self) -> list[Trend]:
        """Return the limits of which half or more was taken, the fullest first."""
        near = [one for one in self.trends.values() if one.peak.share >= NEAR]
        return sorted(near, key=lambda one: -one.peak.share)

    def find_soonest(self) -> float | None:
        """Return after how many seconds the first limit is full, of those that grow."""
        times = (one.left for one in self.near)
        return min((one for one in times if one is not None), default=None)
