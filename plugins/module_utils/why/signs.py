# SPDX-License-Identifier: BSD-2-Clause
"""What a host shows for or against each reason of a run's end.

Sources: ``oom_kill_process()`` and ``dump_oom_summary()`` in mm/oom_kill.c, ``pids_can_fork()``,
``alloc_empty_file()`` for what the kernel logs; cgroups(7) for the counters of events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..core.values import UNLIMITED, format_quantity
from .facts import AGAINST, DOUBT, HINT, SURE, Facts, Group, Sign
from .faults import find_faults
from .kills import Kill, find_kills, is_below
from .no_limits import BY_HAND, DISK, OWN_EXIT
from .reasons import (
    CGROUP,
    COMMIT,
    FILE_MAX,
    HOST,
    MAPPINGS,
    MEMLOCK,
    NOFILE,
    NPROC,
    OOMD,
    PIDS,
    REASONS,
    SHM,
    SPACE,
    THREADS,
)

_NEAR, _NEAR_OF_PID = 60.0, 600.0
"""Seconds between a run's end and what the kernel logged of it, at most."""
_LATE = 86400.0
"""Seconds that a run's log may go on after a process of it was killed."""
_RECENT = 600.0
"""Seconds for which a bound that is full now was full when a run ended."""
_MOST_TOLD = 2
_MOST_TASKS = 30000
"""Tasks that no run starts at once."""

_OOMD_KILLED = re.compile(r"Killed (/.*?) due to memory ")
_BY_NODES = REASONS[HOST]._replace(
    text="the kernel killed it because the memory nodes that it may use had no memory left",
    way="let it use more nodes (cpuset.mems, AllowedMemoryNodes=, numactl), or use less memory",
)
_NEAR_GROUP = REASONS[CGROUP]._replace(
    text="a cgroup above it is near its memory limit, beyond which the kernel kills"
)

_FULL, _FAR, _FULL_DISK = 0.95, 0.5, 0.99
"""Shares of a bound: from one on it is reached, below the other it was not lately."""


def find_signs(facts: Facts, codes: Sequence[str]) -> list[Sign]:
    """Return what the host shows for or against some reasons."""
    signs = [sign for code in codes for sign in _FINDERS.get(code, _weigh_uses)(code, facts)]
    if facts.here or facts.task:
        return signs
    doubted = [_doubt(sign) for sign in signs]
    return [one for one in doubted if one.worth != DOUBT or facts.age is not None]


def _doubt(sign: Sign) -> Sign:
    """Return a sign of a run that may have been on another host; nproc binds root nowhere."""
    is_of_host = sign.worth == AGAINST and sign.code != NPROC
    return sign._replace(worth=DOUBT) if is_of_host else sign


def _rate_now(facts: Facts) -> int:
    """Return what it is worth that a bound is full now."""
    is_now = facts.task is not None or (facts.age is not None and facts.age <= _RECENT)
    return SURE if is_now else HINT


def _weigh_uses(code: str, facts: Facts) -> Iterator[Sign]:
    """Yield that a bound is reached now, by what the kernel counts."""
    for use in facts.uses.get(REASONS[code].item, ()):
        if use.most and use.used >= use.most * _FULL:
            item = REASONS[code].item
            told = f"{item}: {use.used} of {use.most} are taken now: {use.who}"
            yield Sign(code, _rate_now(facts), told)


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


def _weigh_stack(code: str, facts: Facts) -> Iterator[Sign]:
    """Yield whether what a process touched last was beside its stack."""
    for one in find_faults(facts.log or ()):
        if one.pid in facts.pids and _is_near(one.age, facts, True):
            yield Sign(code, SURE if one.is_of_stack else AGAINST, one.text)
    yield from _weigh_limit(code, facts)


def _weigh_exit(code: str, facts: Facts) -> Iterator[Sign]:
    """Yield what a manager says of who ended a run: a signal to its first process, or itself."""
    told = facts.told
    if told.get("ExecMainCode") == "1" and code == OWN_EXIT:
        status = told.get("ExecMainStatus", "")
        text = f"systemd says that its main process ended by itself, with {status}"
        yield Sign(code, HINT, text)
    elif told.get("ExecMainCode") in ("2", "3") and code == OWN_EXIT:
        yield Sign(code, AGAINST, "systemd says that a signal ended its main process")
    elif told.get("signals") and code == BY_HAND:
        yield Sign(code, SURE, f"Docker was told to send it signal {told['signals']}")
    elif told.get("signals") == "" and code == OWN_EXIT:
        yield Sign(code, HINT, "Docker was not told to send it a signal")


def _weigh_disk(code: str, facts: Facts) -> Iterator[Sign]:
    """Yield that the file system has no room left, or no inodes."""
    for use in facts.uses.get(code, ()):
        if use.most and use.used >= use.most * _FULL_DISK:
            worth = _rate_now(facts) if use.used >= use.most else HINT
            yield Sign(code, worth, f"{use.who}: {use.used} of {use.most} are taken now")


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
            told = f"process {facts.task.pid} may have {size} ({item})"
            yield Sign(code, SURE, told, REASONS[code]._replace(item=item))


def _weigh_commit(code: str, facts: Facts) -> Iterator[Sign]:
    memory = facts.memory
    mode, most = memory.get("overcommit"), memory.get("MemTotal", 0) + memory.get("SwapTotal", 0)
    if mode == 1:
        yield Sign(code, AGAINST, "vm.overcommit_memory is 1: the kernel promises everything")
    elif mode == 2:
        left = memory.get("CommitLimit", 0) - memory.get("Committed_AS", 0)
        if facts.request > left or left < most * (1 - _FULL):
            told = f"vm.overcommit_memory is 2, and {max(left, 0)} bytes are left"
            yield Sign(code, _rate_now(facts), told)
    elif facts.request and most:
        reached = facts.request > most
        size, all_of_it = format_quantity(facts.request, "bytes"), format_quantity(most, "bytes")
        yield Sign(
            code,
            _rate_now(facts) if reached else AGAINST,
            f"{size} were asked for, and the host has {all_of_it} with swap",
        )


def _weigh_pids(code: str, facts: Facts) -> Iterator[Sign]:
    groups = [one for one in facts.groups if one.item == "pids.max"]
    for one in groups:
        is_full = one.used >= one.most * _FULL
        if one.hits or is_full:
            told = f"{one.path}: {one.used} of {one.most} tasks, refused {one.hits} times"
            yield Sign(code, _rate_now(facts) if is_full else _rate_hits(one, facts), told)
    rejected = [one for one in facts.log or () if "fork rejected by pids controller" in one.text]
    near = [one for one in rejected if facts.age is not None and _is_near(one.age, facts)]
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
                told = f"{use.used} of {use.most} tasks run now ({item})"
                yield Sign(code, _rate_now(facts), told, REASONS[code]._replace(item=item))
    if room and min(room) >= _MOST_TASKS:
        yield Sign(code, AGAINST, f"the host has room for {min(room)} tasks more")


def _weigh_files(code: str, facts: Facts) -> Iterator[Sign]:
    for line in facts.log or ():
        if "file-max limit" in line.text:
            is_near = facts.age is not None and _is_near(line.age, facts)
            yield Sign(code, SURE if is_near else HINT, f"kernel log: {line.text}")
    yield from _weigh_uses(code, facts)


def _weigh_shm(code: str, facts: Facts) -> Iterator[Sign]:
    for use in facts.uses.get("shm_size", ()):
        size = format_quantity(use.most, "bytes")
        if use.used + facts.request >= use.most * _FULL:
            told = f"{use.who} has {size}, and {use.used} bytes are taken now"
            yield Sign(code, _rate_now(facts), told)


def _is_of_home(kill: Kill, facts: Facts) -> bool:
    """Tell whether a kill was of the run's cgroup, while it ran."""
    if not kill.was_in(facts.home) or facts.started is None:
        return False
    return (facts.age or 0.0) - _NEAR <= kill.age <= facts.started + _NEAR


def _is_near(age: float, facts: Facts, is_named: bool = False) -> bool:
    """Tell whether a line is about as old as the end: later a number may be another's."""
    if facts.age is None:
        return True
    return abs(age - facts.age) <= (_NEAR_OF_PID if is_named else _NEAR)


def _weigh_kill(code: str, facts: Facts) -> Iterator[Sign]:
    """Yield what the kernel's log and a manager say of a kill for memory."""
    ever = find_kills(facts.log or ())
    if facts.home:
        named = [one for one in ever if _is_of_home(one, facts)]
        kills = named
        if facts.started is None:
            kills = [one for one in ever if one.was_in(facts.home)]
        ever = kills
    else:
        named = [one for one in ever if one.pid in facts.pids and _is_near(one.age, facts, True)]
        kills = named or [one for one in ever if _is_near(one.age, facts)]
    is_sure = bool(named) and (bool(facts.home) or facts.age is not None)
    for one in kills[-_MOST_TOLD:]:
        yield from _tell_kill(code, one, is_sure)
    if code == CGROUP:
        yield from _weigh_counters(code, facts)
    if facts.told.get("Result") == "oom-kill":
        yield from _weigh_result(code, facts, bool(kills))
    elif facts.log_is_whole and not kills:
        late = [one for one in ever if _may_be_of_run(one, facts)]
        if not any(one.pid in facts.pids for one in late):
            text = "the kernel log names no kill for memory about then"
            yield Sign(code, DOUBT if late else AGAINST, text)


def _may_be_of_run(kill: Kill, facts: Facts) -> bool:
    """Tell whether a kill may have been of the run: its log may go on long after one of its
    processes was killed."""
    return facts.age is None or -_NEAR_OF_PID <= kill.age - facts.age <= _LATE


def _tell_kill(code: str, kill: Kill, is_sure: bool) -> Iterator[Sign]:
    if (kill.constraint == "CONSTRAINT_MEMCG") != (code == CGROUP):
        return
    reason = None if kill.constraint in ("CONSTRAINT_MEMCG", "CONSTRAINT_NONE") else _BY_NODES
    where = f" at the limit of {kill.group}" if kill.group else ""
    text = f"kernel log: killed pid {kill.pid or '?'} ({kill.comm}) of uid {kill.uid} for memory"
    yield Sign(code, SURE if is_sure else HINT, f"{text}{where}", reason, kill.group)


def _weigh_result(code: str, facts: Facts, is_told: bool) -> Iterator[Sign]:
    """Yield what systemd says of a unit: it tells neither whose limit it was, nor who killed."""
    if is_told or facts.oomd:
        return  # The log says more.
    is_bound = facts.told.get("MemoryMax", "").isdigit()
    if code == CGROUP or not is_bound:
        worth = SURE if is_bound else HINT
        yield Sign(code, worth, "systemd says of the unit: Result=oom-kill")


def _weigh_counters(code: str, facts: Facts) -> Iterator[Sign]:
    for group in facts.groups:
        if group.item != "memory.max":
            continue
        size = format_quantity(group.most, "bytes")
        if facts.task and group.used >= group.most * _FULL:
            told = f"{group.path}: {group.used} of {size} are taken, without what files may give"
            yield Sign(code, SURE, told, _NEAR_GROUP, group.path)
        elif group.hits:
            told = f"{group.path}: {size}, kills for memory since it was made: {group.hits}"
            yield Sign(code, _rate_hits(group, facts), told, None, group.path)
    for key, word in (("OOMKilled", "true"), ("JobState", "OUT_OF_MEMORY")):
        if facts.told.get(key, "").startswith(word):
            yield Sign(code, SURE, f"{key} is {facts.told[key]}")


def _rate_hits(group: Group, facts: Facts) -> int:
    """Return what a counter is worth: it is never set back, and counts for all below a cgroup."""
    is_own = bool(facts.home) and group.path.endswith(facts.home)
    return SURE if is_own and facts.task is None else HINT


def _weigh_oomd(code: str, facts: Facts) -> Iterator[Sign]:
    killed = _OOMD_KILLED.match(facts.oomd)
    text = f"systemd-oomd: {facts.oomd}"
    if killed and facts.home:
        group = killed[1]
        if is_below(group, facts.home) or is_below(facts.home, group):
            yield Sign(code, SURE, text)
    elif killed:
        yield Sign(code, HINT, text)
    elif not facts.has_oomd:
        yield Sign(code, AGAINST, "systemd-oomd does not run here")


_FINDERS: Mapping[str, Callable[[str, Facts], Iterator[Sign]]] = {
    **dict.fromkeys((NOFILE, MAPPINGS, "cpu-time", "fsize"), _weigh_limit),
    **dict.fromkeys(DISK, _weigh_disk),
    "stack": _weigh_stack,
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
    BY_HAND: _weigh_exit,
    OWN_EXIT: _weigh_exit,
}
