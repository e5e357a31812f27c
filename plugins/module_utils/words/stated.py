# SPDX-License-Identifier: BSD-2-Clause
"""Judge a run by the limits that its own words give it: a container's, a pod's, a job's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ..core.cause import Cause
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from ..core.values import Rlimit, format_quantity
from ..training.causes import (
    Room,
    blame_cpus,
    blame_descriptors,
    blame_memlock,
    blame_memory,
    blame_shared_memory,
)
from ..training.loader import (
    Bound,
    Plan,
    bound_by_descriptors,
    bound_by_memory,
    bound_by_shared_memory,
    count_descriptors,
    count_memory,
    count_shared_memory,
    plan_workers,
)
from ..training.policy import Training, choose_checks
from ..training.tasks import TASKS, TaskRoom, blame_tasks, bound_by_tasks, count_tasks
from ..training.verdict import judge_tasks
from .facts import Stated

_MIB = 2**20
CONTAINER = "new-container:docker"


def tell_stated(stated: Stated) -> Iterator[str]:
    """Yield each limit with where it stands."""
    sizes = {"memory": stated.memory, "shm_size": stated.shm, "memlock": stated.memlock}
    counts = {"nofile": stated.nofile, "cpus": stated.cpus}
    for name, size in sizes.items():
        if size is not None:
            at = stated.at[{"shm_size": "shm"}.get(name, name)]
            yield f"{stated.place} {name} {format_quantity(size, 'bytes')} ({at})"
    for name, number in counts.items():
        if number is not None:
            yield f"{stated.place} {name} {_format(number)} ({stated.at[name]})"
    if stated.pids is not None:
        yield f"{stated.place} tasks {stated.pids} ({stated.at['pids']})"


def _format(number: float) -> str:
    return f"{number:g}" if number % 1 else f"{number:.0f}"


def judge_stated(run: Training, stated: Stated) -> Iterator[Finding]:
    """Yield whether a run fits into what its words give it; what they leave open is unknown."""
    checks = choose_checks(run)
    if run.workers is None:
        return
    plan = plan_workers(_bound(run, stated), run.workers)
    if stated.shm is not None and "shared_memory" in checks:
        yield from _judge_shm(run, stated, plan)
    if "descriptors" in checks:
        yield from _judge_descriptors(run, stated, plan)
    if "memory" in checks:
        yield from _judge_memory(run, stated, plan)
    if "tasks" in checks and stated.pids is not None:
        yield _judge_tasks(run, stated, stated.pids, plan)
    if "cpus" in checks and stated.cpus is not None:
        cpus = stated.cpus
        many = max(run.workers * run.loaders, 1) * run.ranks_per_node
        wanted = Requirement(stated.place, "cpus", "value", many)
        blame = partial(blame_cpus, run, cpus, stated.at["cpus"], plan)
        yield _judge(wanted, int(cpus), stated.at["cpus"], blame)


def _bound(run: Training, stated: Stated) -> Iterator[Bound]:
    """Yield how many workers each limit allows."""
    if stated.shm is not None and run.batch_size is not None:
        yield bound_by_shared_memory(run, stated.shm)
    if stated.nofile is not None and run.tensors_per_batch is not None:
        yield bound_by_descriptors(run, stated.nofile)
    if stated.pids is not None:
        yield bound_by_tasks(run, run.threads or 1, _find_room(stated, stated.pids))
    if stated.memory is not None:
        yield bound_by_memory(run, stated.memory, stated.at["memory"])


def _find_room(stated: Stated, pids: int) -> TaskRoom:
    return TaskRoom(pids, pids, f"{stated.place} ({stated.at['pids']})")


def _judge_tasks(run: Training, stated: Stated, pids: int, plan: Plan) -> Finding:
    """Judge the number of tasks; of threads that nobody states, each process has one at least."""
    needed = count_tasks(run, run.workers or 0, run.threads or 1)
    wanted = Requirement(stated.place, TASKS, "value", needed)
    room = _find_room(stated, pids)
    return _judge(
        wanted,
        pids,
        stated.at["pids"],
        lambda: judge_tasks(run, blame_tasks(run, needed, room, plan), pids),
    )


def _judge(
    wanted: Requirement, value: int, how: str, blame: Callable[[], Cause], least: int | None = None
) -> Finding:
    """Return a finding; ``least`` is what is needed where the requirement is rounded up."""
    needed = wanted.minimum if least is None else least
    if value >= (needed or 0):
        return Finding(PASS, wanted, Observation(value, how))
    return Finding(FAIL, wanted, Observation(value, how), (blame(),))


def _round_up(size: int) -> int:
    return -(-size // _MIB) * _MIB


def _judge_shm(run: Training, stated: Stated, plan: Plan) -> Iterator[Finding]:
    size, workers = stated.shm or 0, run.workers or 0
    needed = count_shared_memory(run, workers)
    wanted = Requirement(stated.place, "shm_size", "value", _round_up(needed), unit="bytes")
    blame = partial(blame_shared_memory, run, needed, size, plan)
    yield _judge(wanted, size, stated.at["shm"], blame, needed)


def _judge_descriptors(run: Training, stated: Stated, plan: Plan) -> Iterator[Finding]:
    needed = count_descriptors(run, run.workers or 0)
    wanted = Requirement(stated.place, "nofile", "soft", needed)
    if stated.nofile is not None:
        has = Rlimit(stated.nofile, stated.nofile)
        blame = partial(blame_descriptors, run, needed, has, plan)
        yield _judge(wanted, stated.nofile, stated.at["nofile"], blame)
    elif stated.place == CONTAINER:
        reason = "no word states nofile; --place new-container:docker shows what dockerd gives"
        yield Finding(UNKNOWN, wanted, Observation(None, "", reason))
    elif stated.place.startswith("pod:"):
        reason = "no pod states nofile; the node's containerd gives it: run preflight in the pod"
        yield Finding(UNKNOWN, wanted, Observation(None, "", reason))


def _judge_memory(run: Training, stated: Stated, plan: Plan) -> Iterator[Finding]:
    if stated.memory is not None:
        needed = count_memory(run, run.workers or 0)
        wanted = Requirement(stated.place, "memory", "value", _round_up(needed), unit="bytes")
        where = f"{stated.place} ({stated.at['memory']})"
        # A container may have as much swap beside it (docker run --memory).
        room = Room(where, stated.memory, 0, stated.memory, most=2 * stated.memory)
        blame = partial(blame_memory, run, needed, room, plan)
        yield _judge(wanted, stated.memory, stated.at["memory"], blame, needed)
    if run.pinned_buffer and stated.memlock is not None:
        wanted = Requirement(stated.place, "memlock", "soft", run.pinned_buffer, unit="bytes")
        soft = stated.memlock
        yield _judge(
            wanted, soft, stated.at["memlock"], lambda: blame_memlock(run, soft, stated.place)
        )
