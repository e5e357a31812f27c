# SPDX-License-Identifier: BSD-2-Clause
"""What a host shows for or against each reason of a run's end.

Sources: ``oom_kill_process()`` and ``dump_oom_summary()`` in mm/oom_kill.c, ``pids_can_fork()``,
``alloc_empty_file()`` for what the kernel logs; cgroups(7) for the counters of events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..core.values import UNLIMITED, NamedTuple, Rlimit, format_quantity
from .reasons import (
    BY_HAND,
    CGROUP,
    COMMIT,
    FILE_MAX,
    HOST,
    MAPPINGS,
    MEMLOCK,
    NOFILE,
    NPROC,
    OOMD,
    OWN_EXIT,
    PIDS,
    REASONS,
    SHM,
    SPACE,
    THREADS,
)

SURE, HINT, AGAINST = 2, 1, 0
"""What a sign is worth: it shows the reason; it may be of another run; it excludes the reason."""

_NEAR, _NEAR_OF_PID = 60.0, 600.0
"""Seconds between a run's end and what the kernel logged of it, at most."""
_MOST_TOLD = 2
_MOST_TASKS = 30000
"""Tasks that no run starts at once."""

_FULL, _FAR = 0.95, 0.5
"""Shares of a bound: from one on it is reached, below the other it was not lately."""


class Use(NamedTuple):
    """How much of a bound is taken, and by whom."""

    used: int
    most: int
    who: str


class Group(NamedTuple):
    """A bound of a cgroup above the run, and how often it was hit. ``item`` is its file."""

    item: str
    path: str
    most: int
    used: int
    hits: int


class Task(NamedTuple):
    """A process that runs, by what the kernel tells of it. ``taken`` is by item of a limit."""

    pid: int
    comm: str
    uid: int
    start: int
    limits: Mapping[str, Rlimit] = {}
    taken: Mapping[str, int] = {}
    may_lock: bool = False


class Line(NamedTuple):
    """A line of the kernel's log, and how many seconds ago it was written."""

    age: float
    text: str


class Facts(NamedTuple):
    """What was seen of a host.

    ``uid`` is whose run it was, ``None`` where nobody knows. ``uses`` are by the item of a reason.
    ``log`` is ``None`` where the kernel's log may not be read. ``told`` is what a manager says of
    the unit, job or container, and ``home`` what its cgroup is called. ``age`` is how many seconds
    ago the run ended, ``None`` where nobody knows. ``pids`` are the processes that the words name.
    """

    uid: int | None = None
    task: Task | None = None
    groups: Sequence[Group] = ()
    uses: Mapping[str, Sequence[Use]] = {}
    log: Sequence[Line] | None = None
    log_is_whole: bool = False
    memory: Mapping[str, int] = {}
    told: Mapping[str, str] = {}
    home: str = ""
    age: float | None = None
    pids: frozenset[int] = frozenset()
    request: int = 0
    has_oomd: bool = True
    oomd: str = ""


class Sign(NamedTuple):
    """What speaks for a reason, or against it."""

    code: str
    worth: int
    text: str


def find_signs(facts: Facts, codes: Sequence[str]) -> list[Sign]:
    """Return what the host shows for or against some reasons."""
    return [sign for code in codes for sign in _FINDERS.get(code, _weigh_uses)(code, facts)]


def _weigh_uses(code: str, facts: Facts) -> Iterator[Sign]:
    """Yield that a bound is reached now, by what the kernel counts."""
    for use in facts.uses.get(REASONS[code].item, ()):
        if use.most and use.used >= use.most * _FULL:
            item = REASONS[code].item
            yield Sign(code, SURE, f"{item}: {use.used} of {use.most} are taken: {use.who}")


def _weigh_limit(code: str, facts: Facts) -> Iterator[Sign]:
    """Yield that a process is at its limit, or has none."""
    task = facts.task
    item = REASONS[code].item
    if task is None or item not in task.limits:
        return
    soft, taken = task.limits[item].soft, task.taken.get(item)
    who = f"process {task.pid} ({task.comm})"
    if soft == UNLIMITED:
        yield Sign(code, AGAINST, f"{who} has no limit of {item}")
    elif taken is not None and taken + facts.request >= soft * _FULL:
        yield Sign(code, SURE, f"{who} has taken {taken} of {soft} ({item})")
    elif taken is not None and taken < soft * _FAR:
        yield Sign(code, AGAINST, f"{who} has taken {taken} of {soft} ({item})")


def _weigh_nproc(code: str, facts: Facts) -> Iterator[Sign]:
    if facts.uid == 0:
        yield Sign(code, AGAINST, "nproc does not bind root")
    else:
        yield from _weigh_limit(code, facts)


def _weigh_memlock(code: str, facts: Facts) -> Iterator[Sign]:
    if facts.task and facts.task.may_lock:
        yield Sign(code, AGAINST, f"process {facts.task.pid} has CAP_IPC_LOCK")
    else:
        yield from _weigh_limit(code, facts)


def _weigh_space(code: str, facts: Facts) -> Iterator[Sign]:
    if facts.task is None:
        return
    bounds = {item: facts.task.limits.get(item) for item in ("as", "data")}
    if all(pair and pair.soft == UNLIMITED for pair in bounds.values()):
        yield Sign(code, AGAINST, f"process {facts.task.pid} has no limit of as or data")
        return
    for item, pair in bounds.items():
        if pair and facts.task.taken.get(item, 0) + facts.request >= pair.soft * _FULL:
            size = format_quantity(pair.soft, "bytes")
            yield Sign(code, SURE, f"process {facts.task.pid} may have {size} ({item})")


def _weigh_commit(code: str, facts: Facts) -> Iterator[Sign]:
    memory = facts.memory
    mode, most = memory.get("overcommit"), memory.get("MemTotal", 0) + memory.get("SwapTotal", 0)
    if mode == 1:
        yield Sign(code, AGAINST, "vm.overcommit_memory is 1: the kernel promises everything")
    elif mode == 2:
        left = memory.get("CommitLimit", 0) - memory.get("Committed_AS", 0)
        if facts.request > left or left < most * (1 - _FULL):
            yield Sign(code, SURE, f"vm.overcommit_memory is 2, and {max(left, 0)} bytes are left")
    elif facts.request and most:
        reached = facts.request > most
        size, all_of_it = format_quantity(facts.request, "bytes"), format_quantity(most, "bytes")
        yield Sign(
            code,
            SURE if reached else AGAINST,
            f"{size} were asked for, and the host has {all_of_it} with swap",
        )


def _weigh_pids(code: str, facts: Facts) -> Iterator[Sign]:
    groups = [one for one in facts.groups if one.item == "pids.max"]
    for one in groups:
        if one.hits or one.used >= one.most * _FULL:
            told = f"{one.path}: {one.used} of {one.most} tasks, refused {one.hits} times"
            yield Sign(code, SURE, told)
    rejected = [one for one in facts.log or () if "fork rejected by pids controller" in one.text]
    near = [one for one in rejected if facts.age is not None and _is_near(one, facts)]
    for line in near[-1:]:
        yield Sign(code, HINT, f"kernel log: {line.text}")  # Once for each cgroup, and never again.
    if facts.log_is_whole and not rejected and not any(one.hits for one in groups):
        yield Sign(code, AGAINST, "the kernel log names no cgroup that refused a task since boot")


def _weigh_threads(code: str, facts: Facts) -> Iterator[Sign]:
    """Yield whether the host has room for tasks: what a run had is gone with it."""
    room = []
    for item in ("kernel.threads-max", "kernel.pid_max"):
        for use in facts.uses.get(item, ()):
            room.append(use.most - use.used)
            if use.used >= use.most * _FULL:
                yield Sign(code, SURE, f"{use.used} of {use.most} tasks run ({item})")
    if room and min(room) >= _MOST_TASKS:
        yield Sign(code, AGAINST, f"the host has room for {min(room)} tasks more")


def _weigh_files(code: str, facts: Facts) -> Iterator[Sign]:
    for line in facts.log or ():
        if "file-max limit" in line.text:
            yield Sign(code, SURE if _is_near(line, facts) else HINT, f"kernel log: {line.text}")
    yield from _weigh_uses(code, facts)


def _weigh_shm(code: str, facts: Facts) -> Iterator[Sign]:
    for use in facts.uses.get("shm_size", ()):
        size = format_quantity(use.most, "bytes")
        if use.used + facts.request >= use.most * _FULL:
            yield Sign(code, SURE, f"{use.who} has {size}, and {use.used} bytes are taken")


_KILLED = re.compile(
    r"oom-kill:constraint=(\w+),(?:.*?oom_memcg=([^,]*),)?"
    r".*?task_memcg=([^,]*),task=([^,]*),pid=(\d+),uid=(\d+)"
)


class _Kill(NamedTuple):
    """A kill for memory that the kernel logged."""

    line: Line
    constraint: str
    group: str
    lived: str
    comm: str
    pid: int
    uid: int


def _list_kills(facts: Facts) -> list[_Kill]:
    """Return who was killed for memory about when the run ended; ever, where nobody knows when.

    Of a run whose cgroup is known, those that lived there.
    """
    found = ((line, _KILLED.search(line.text)) for line in facts.log or ())
    kills = [
        _Kill(line, one[1], one[2] or "", one[3], one[4], int(one[5]), int(one[6]))
        for line, one in found
        if one
    ]
    if facts.home:
        return [one for one in kills if _is_named(one, facts)]
    return [one for one in kills if _is_near(one.line, facts, _is_named(one, facts))]


def _is_named(kill: _Kill, facts: Facts) -> bool:
    """Tell whether a kill was of this run: by its cgroup, or by a number that the words name."""
    return facts.home in kill.lived if facts.home else kill.pid in facts.pids


def _is_near(line: Line, facts: Facts, is_named: bool = False) -> bool:
    """Tell whether a line is about as old as the end: later a number may be another's."""
    if facts.age is None:
        return True
    return abs(line.age - facts.age) <= (_NEAR_OF_PID if is_named else _NEAR)


def _weigh_kill(code: str, facts: Facts) -> Iterator[Sign]:
    """Yield what the kernel's log and a manager say of a kill for memory."""
    kills = _list_kills(facts)
    named = [one for one in kills if _is_named(one, facts)]
    for one in (named or kills)[-_MOST_TOLD:]:
        if (one.constraint == "CONSTRAINT_MEMCG") != (code == CGROUP):
            continue
        where = f" at the limit of {one.group}" if one.group else ""
        text = f"kernel log: killed pid {one.pid} ({one.comm}) of uid {one.uid} for memory{where}"
        yield Sign(code, SURE if named and (facts.home or facts.age is not None) else HINT, text)
    if code == CGROUP:
        yield from _weigh_counters(code, facts)
    if not kills and facts.log_is_whole and facts.told.get("Result") != "oom-kill":
        yield Sign(code, AGAINST, "the kernel log names no kill for memory about then")


def _weigh_counters(code: str, facts: Facts) -> Iterator[Sign]:
    for group in facts.groups:
        if group.item == "memory.max" and group.hits:
            size = format_quantity(group.most, "bytes")
            yield Sign(code, SURE, f"{group.path}: {size}, kills for memory: {group.hits}")
    for key, word in (("OOMKilled", "true"), ("JobState", "OUT_OF_MEMORY")):
        if facts.told.get(key, "").startswith(word):
            yield Sign(code, SURE, f"{key} is {facts.told[key]}")


def _weigh_oomd(code: str, facts: Facts) -> Iterator[Sign]:
    if facts.oomd:
        yield Sign(code, SURE, f"systemd-oomd: {facts.oomd}")
    elif not facts.has_oomd:
        yield Sign(code, AGAINST, "systemd-oomd does not run here")


_FINDERS: Mapping[str, Callable[[str, Facts], Iterator[Sign]]] = {
    **dict.fromkeys((NOFILE, MAPPINGS, "stack", "cpu-time", "fsize"), _weigh_limit),
    NPROC: _weigh_nproc,
    PIDS: _weigh_pids,
    THREADS: _weigh_threads,
    FILE_MAX: _weigh_files,
    MEMLOCK: _weigh_memlock,
    SPACE: _weigh_space,
    COMMIT: _weigh_commit,
    SHM: _weigh_shm,
    CGROUP: _weigh_kill,
    HOST: _weigh_kill,
    OOMD: _weigh_oomd,
    BY_HAND: lambda _code, _facts: iter(()),
    OWN_EXIT: lambda _code, _facts: iter(()),
}
