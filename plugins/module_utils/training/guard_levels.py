# SPDX-License-Identifier: BSD-2-Clause
"""How near a process is to a limit, how fast it gets there, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..core.values import NamedTuple
from ..shared_memory.model import SHM
from .loader import format_size

DESCRIPTORS, MAPPINGS, TASKS = "descriptors", "mappings", "tasks"
MEMORY, SPACE = "memory", "address space"

_MIB = 2**20
_REARMED = 0.9
"""Below this part of the threshold a limit may be told again."""
_HORIZON = 0.01
"""Seconds; a thread that wants the interpreter gets it in half of that, on its own."""
_LONGEST, _SHORTEST = 1.0, 0.001
_HOT = 10
"""A rest is that many times what a look takes: 10 % of a core before a crossing."""
_FORETOLD = 60.0


class Kind(NamedTuple):
    """What is counted: the fastest rise that one program can make, and what its end looks like."""

    fastest: float
    """For each second."""
    end: str
    fix: str
    is_bytes: bool = False


KINDS: Mapping[str, Kind] = {
    DESCRIPTORS: Kind(
        5e5, 'the next open fails with "Too many open files"', "close files or use fewer workers"
    ),
    MAPPINGS: Kind(
        5e5,
        'the next mapping fails with "Cannot allocate memory"',
        "hold fewer tensors or mapped files",
    ),
    TASKS: Kind(
        5e4,
        'the next worker or thread fails with "Resource temporarily unavailable"',
        "start fewer workers or threads",
    ),
    SHM: Kind(
        4e9,
        "a worker ends with a bus error",
        "use fewer workers, a smaller batch or less prefetch",
        is_bytes=True,
    ),
    MEMORY: Kind(
        4e9,
        "the kernel kills a process (exit -9)",
        "use fewer workers or a smaller batch",
        is_bytes=True,
    ),
    SPACE: Kind(
        1e11, 'the next mapping fails with "Cannot allocate memory"', "map less", is_bytes=True
    ),
}
_RAISE = {
    "RLIMIT_NOFILE": "ulimit -n, LimitNOFILE=, --ulimit nofile",
    "RLIMIT_NPROC": "ulimit -u, LimitNPROC=, --ulimit nproc",
    "RLIMIT_AS": "ulimit -v, LimitAS=",
    "vm.max_map_count": "sysctl -w vm.max_map_count=262144",
    "pids.max": "TasksMax=, --pids-limit",
    "memory.max": "MemoryMax=, --memory",
    "memory.high": "MemoryHigh=",
    "memory.limit_in_bytes": "MemoryMax=, --memory",
    "kernel.threads-max": "sysctl -w kernel.threads-max",
    "kernel.pid_max": "sysctl -w kernel.pid_max",
    SHM: "--shm-size, mount -o remount,size=",
}
"""What raises a limit, by the last part of its name."""
_SLOWED = "the kernel slows every process down"


class Level(NamedTuple):
    """How much of one limit is used, and whose value the limit is: a file, a sysctl or an rlimit.

    ``hard`` is to where a process may raise it by itself.
    """

    name: str
    used: int
    limit: int
    where: str
    hard: int = 0


class Reached(NamedTuple):
    """A limit that comes near; ``text`` is the whole sentence.

    ``raised`` is to where its soft limit was raised just now; 0 is nowhere.
    """

    level: Level
    text: str
    raised: int = 0

    def __str__(self) -> str:
        return self.text


class Trend:
    """One limit over time: how fast it is used up, and whether that was told."""

    def __init__(self) -> None:
        self.level: Level | None = None
        self.rate = 0.0
        self.is_told = False
        self._seen = self._since = 0.0
        self._base = 0

    def follow(self, level: Level, now: float, threshold: float) -> bool:
        """Take what was seen, and return whether it has to be told now.

        That is the part of the limit that ``threshold`` says or, where it rises so fast that
        nobody could look again in time, before.

        :param now: When the look began; what another thread saw later is not undone.
        """
        if now < self._seen:
            return False
        is_first, self._seen, self.level = self.level is None, now, level
        if is_first or now - self._since >= _HORIZON:
            if not is_first:
                gained = max(level.used - self._base, 0) / (now - self._since)
                self.rate = max(gained, self.rate / 2)
            self._since, self._base = now, level.used
        mark = level.limit * threshold
        if level.used >= mark or level.used + self.rate * _HORIZON >= level.limit:
            is_new, self.is_told = not self.is_told, True
            return is_new
        if level.used < mark * _REARMED:
            self.is_told = False
        return False

    def rearm(self, limit: int) -> None:
        """Begin to watch a limit that was raised."""
        self.is_told = False
        self.level = self.level and self.level._replace(limit=limit)

    def find_left(self, threshold: float) -> float:
        """Return what is left before it has to be told; no end where it was."""
        if self.level is None or self.is_told:
            return float("inf")
        return max(self.level.limit * threshold - self.level.used, 0)


def choose_rest(trends: Iterable[Trend], threshold: float, cost: float, share: float) -> float:
    """Return the seconds until the next look.

    It comes before the fastest rise there is could reach the threshold, but takes no more than its
    share of a core; where a rise was seen, in a quarter of the time which that leaves.

    :param cost: The seconds of a core that a look takes.
    :param share: The part of a core that looks may take while nothing rises.
    """
    fastest = forecast = float("inf")
    for trend in trends:
        left = trend.find_left(threshold)
        if trend.level:
            fastest = min(fastest, left / KINDS[trend.level.name].fastest)
        if trend.rate:
            forecast = min(forecast, left / trend.rate)
    steady = max(min(fastest / 2, _LONGEST), cost / share)
    return max(min(steady, forecast / 4), cost * _HOT, _SHORTEST)


def describe(
    level: Level, rate: float = 0, kinds: Iterable[tuple[str, int]] = (), raised: int = 0
) -> str:
    """Return the sentence that tells of a limit: what is used, whose value it is, and the fix.

    :param rate: By how much more is used in a second.
    :param kinds: The biggest kinds of what is open.
    :param raised: To where the soft limit was raised just now; 0 is nowhere.
    """
    kind = KINDS[level.name]
    used, limit = (
        format_size(one) if kind.is_bytes else str(one) for one in (level.used, level.limit)
    )
    share = level.used * 100 // max(level.limit, 1)
    told = f"{level.name}: {used} of {limit} are used ({share} %, limit {level.where})"
    most = ", ".join(f"{number} {name}" for name, number in kinds)
    told += f", most are {most}" if most else ""
    if raised:
        return f"{told}; the soft limit is raised to {raised}"
    left = (level.limit - level.used) / rate if rate else _FORETOLD
    told += f", full in {max(left, 0):.2g} s at this rate" if left < _FORETOLD else ""
    last = level.where.rpartition("/")[2] if level.name != SHM else SHM
    end = _SLOWED if last == "memory.high" else kind.end
    return f"{told}, and then {end}: {kind.fix}, or raise the limit ({_RAISE[last]})"
