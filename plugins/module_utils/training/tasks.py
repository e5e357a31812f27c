# SPDX-License-Identifier: BSD-2-Clause
"""How many tasks a run takes, processes and their threads, and what bounds them.

Measured with torch 2.13: a worker is three tasks beside a thread that feeds it, whatever it does.
Sources: setrlimit(2) for nproc, cgroups(7) for pids.max, proc_sys_kernel(5) for the two sysctls.
"""

from __future__ import annotations

from functools import partial

from ..core.cause import Cause, Remedy
from ..core.quote import one_line
from ..core.values import NamedTuple
from .causes import DOCKER, UNIT, tell_fit
from .collectives import count_threads_of_groups
from .loader import Bound, Plan, count_managers, find_most
from .policy import STAGES, Training

TASKS = "tasks"
_OF_WORKER = 4
_BESIDE = {"fork": 0, "spawn": 1, "forkserver": 2}
"""Who keeps track of what is shared, and who starts the workers."""
_OF_LIBRARY = {"trl": 2}
"""Threads of pyarrow, which it imports.

Beside these a step of ZeRO-3 on CPUs starts numactl for a moment, DeepSpeed 0.19.8.
"""

_END = (
    'ends with [Errno 11] Resource temporarily unavailable, with "can\'t start new thread", or'
    " waits for ever for a worker that lacks a thread"
)


class TaskRoom(NamedTuple):
    """How many tasks are left, of how many, and who says so: ``where`` is a file or a sysctl."""

    free: int
    most: int
    where: str


def count_tasks(run: Training, workers: int, threads: int) -> int:
    """Return the tasks of all ranks on the node.

    :param threads: Those of each process that trains, its first one with them.
    """
    many = run.loaders * workers
    # Whoever does not begin as a copy begins with a second thread of BLAS, where it may.
    more = run.start_method != "fork" and threads > 1
    beside = _BESIDE[run.start_method] * (1 + more) if many else 0
    each = threads + _OF_LIBRARY.get(run.library, 0) + beside + (_OF_WORKER + more) * many
    each += bool(run.deepspeed and run.deepspeed.stage == STAGES[-1])
    # A manager of names stands for the thread that would pass descriptors.
    each -= (many - workers) if count_managers(run, workers) else 0
    return run.ranks_per_node * each + count_threads_of_groups(run)


def bound_by_tasks(run: Training, threads: int, room: TaskRoom) -> Bound:
    """Return how many workers of each rank may be started."""
    most = find_most(run, partial(count_tasks, threads=threads), room.free)
    return Bound(TASKS, most, f"{room.free} left of {room.where}")


def blame_tasks(run: Training, needed: int, room: TaskRoom, plan: Plan) -> Cause:
    """Say why a run cannot start its workers, or a library its threads."""
    text = (
        f"{_describe(run)} {needed} tasks, threads and all, and {one_line(room.where)} is"
        f" {room.most} and leaves {room.free}, so the run {_END}"
    )
    size = room.most - room.free + needed
    fix = f"{tell_fit(plan)}, or allow {size} tasks there"
    return Cause("run-tasks", text, Remedy(fix, _raise_most(room.where, size)))


def _raise_most(where: str, size: int) -> tuple[tuple[str, ...], ...]:
    """Return how a cgroup gets enough: by who made it, for only that keeps it."""
    folder = where.rpartition("/")[0]
    container, name = DOCKER.search(folder), folder.rpartition("/")[2]
    if container:
        return (("docker", "update", "--pids-limit", str(size), container[1]),)
    if UNIT.fullmatch(name):
        return (("systemctl", "set-property", name, f"TasksMax={size}"),)
    return ()


def blame_nproc(run: Training, needed: int, used: int, soft: int, plan: Plan) -> Cause:
    """Say that the user who runs has no tasks left; other runs and logins count too."""
    text = (
        f"{_describe(run)} {needed} tasks, threads and all; the user who runs has {used}"
        f" already, in every session and run, and may have {soft} (nproc), so the run {_END}"
    )
    fix = f"{tell_fit(plan)}, or raise nproc to {used + needed} where the run starts"
    return Cause("run-tasks", text, Remedy(fix))


def _describe(run: Training) -> str:
    many = run.loaders * (run.workers or 0)
    workers = f"{many} {'worker' if many == 1 else 'workers'}"
    if run.ranks_per_node == 1:
        return f"a run with {workers} takes"
    return f"{run.ranks_per_node} ranks with {workers} each take"
