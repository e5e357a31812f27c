# SPDX-License-Identifier: BSD-2-Clause
"""Judge whether one training run will survive on this host, before it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ..core.cause import Cause
from ..core.finding import (
    FAIL,
    PASS,
    UNKNOWN,
    Finding,
    Observation,
    Requirement,
    judge,
    judge_unlooked,
)
from ..core.policy import CheckOptions
from ..core.values import UNLIMITED
from ..host.look import Look
from ..kernel.read import read_sysctl
from ..kernel.use_read import read_kernel_use
from ..shared_memory.model import SHM, Quota
from .causes import (
    Room,
    blame_address_space,
    blame_cpus,
    blame_descriptors,
    blame_file_handles,
    blame_file_size,
    blame_full_shm,
    blame_leftovers,
    blame_mappings,
    blame_memlock,
    blame_memory,
    blame_model_states,
    blame_quota,
    blame_shared_memory,
    blame_workers,
)
from .loader import (
    GIVE_BACK,
    count_descriptors,
    count_mappings,
    count_memory,
    count_shared_memory,
    format_size,
    keeps_heap,
)
from .model_states import find_floor
from .policy import Training
from .runner_read import NEW_CONTAINER
from .shm_read import find_leftovers, read_free, sum_sizes
from .survey_read import SHM_SIZE, Survey
from .tasks import TASKS, blame_nproc, blame_tasks
from .verdict import judge_tasks, settle

_KERNEL = "kernel"
_MIB, _PAGE = 2**20, 4096
_FILE_MAX, _MAX_MAP_COUNT = "fs.file-max", "vm.max_map_count"


def check_training(run: Training, options: CheckOptions, look: Look) -> Iterator[Finding]:
    """Yield whether a run will survive: all that it needs against all that awaits it."""
    survey = Survey(run, options, look)
    is_blind = True
    stranger = survey.stranger
    for finding in [stranger] if stranger else settle(_look(survey), run):
        # What the kernel gives all says nothing of who will run.
        is_blind = is_blind and (finding.status == UNKNOWN or finding.requirement.place == _KERNEL)
        yield finding
    if is_blind:  # Who starts a run only after a pass must not start it after this.
        yield judge_unlooked(
            "training", "nothing that the policy asks of the run could be measured"
        )


def _look(survey: Survey) -> Iterator[Finding]:
    for check in survey.checks:
        yield from _LOOKS[check](survey)
    if survey.run.workers and survey.run.checks is None and "shared_memory" not in survey.checks:
        yield from _judge_full_shm(survey)
    if survey.run.workers and survey.deadly:
        yield _judge_workers(survey)


def _judge_item(survey: Survey, item: str, blame: Callable[[int], Cause]) -> Iterator[Finding]:
    """Yield what the process that will run gets of one limit, and what the run makes of it."""
    has = survey.find_limit(item)
    for finding in survey.limits:
        if finding.requirement.item == item:
            yield _blame(finding, lambda: [blame(has.soft)] if has else [])


def _judge_workers(survey: Survey) -> Finding:
    """Return whether as many workers fit as are wanted, by every bound that is known."""
    wanted = Requirement(survey.place, "workers", "value", survey.workers)
    finding = judge(wanted, Observation(survey.plan.workers, survey.plan.reasons))
    if finding.status == PASS and survey.unknown_bounds:
        reason = f"how many workers {survey.unknown_bounds} would allow is not known"
        return judge(wanted, Observation(None, survey.plan.reasons, reason))
    return _blame(finding, lambda: [blame_workers(survey.run, survey.plan)])


def _blame(finding: Finding, find: Callable[[], list[Cause]]) -> Finding:
    """Return a finding with its causes, where it fails; what the run makes of it comes first."""
    if finding.status != FAIL:
        return finding
    return finding._replace(causes=(*find(), *finding.causes))


def _check_descriptors(survey: Survey) -> Iterator[Finding]:
    run = survey.run
    needed, has = count_descriptors(run, survey.workers), survey.find_limit("nofile")
    for finding in survey.limits:
        if finding.requirement.item == "nofile":
            yield _blame(
                finding, lambda: [blame_descriptors(run, needed, has, survey.plan)] if has else []
            )
    yield from _check_file_handles(survey, needed)
    if survey.workers:
        yield from _check_mappings(survey)


def _check_file_handles(survey: Survey, needed: int) -> Iterator[Finding]:
    """Yield whether the kernel has that many files left, whoever opens them."""
    run = survey.run
    all_ranks = run.ranks_per_node * (needed + survey.workers * run.dataset_files)
    try:
        used = read_kernel_use().files
    except (OSError, ValueError) as exc:
        wanted = Requirement(_KERNEL, _FILE_MAX, "value", all_ranks)
        yield judge(wanted, Observation(None, "/proc/sys", str(exc)))
        return
    how = f"/proc/sys, {used} files are open"
    blame = partial(blame_file_handles, run, all_ranks, used)
    yield _judge_sysctl(survey, _FILE_MAX, used + all_ranks, how, blame)


def _check_mappings(survey: Survey) -> Iterator[Finding]:
    """Yield whether a process may map as many tensors as the run keeps."""
    needed = count_mappings(survey.run, survey.workers)
    blame = partial(blame_mappings, survey.run, needed)
    yield _judge_sysctl(survey, _MAX_MAP_COUNT, needed, "/proc/sys", blame)


def _judge_sysctl(
    survey: Survey, key: str, needed: int, how: str, blame: Callable[[int], Cause]
) -> Finding:
    """Judge a limit of the kernel's that holds for whoever runs, wherever that is."""
    try:
        value = read_sysctl(key)
        most, reason = (None, f"there is no {key}") if value is None else (int(value), "")
    except (OSError, ValueError) as exc:
        most, reason = None, str(exc)
    finding = judge(Requirement(_KERNEL, key, "value", needed), Observation(most, how, reason))
    if finding.status != FAIL or most is None:
        return finding
    from ..kernel.diagnose import explain_kernel

    (finding,) = explain_kernel([finding], survey.look)
    return _blame(finding, lambda: [blame(most)])


def _check_shared_memory(survey: Survey) -> Iterator[Finding]:
    yield from _check_free(survey)
    if survey.runner.loses_shm and survey.run.sharing == "file_system":
        from ..services.logind_check import check_logind

        runs = any(one.comm == "systemd-logind" for one in survey.look.processes)
        yield check_logind(False, runs)


def _check_free(survey: Survey) -> Iterator[Finding]:
    run, free = survey.run, survey.free_shm
    needed = count_shared_memory(run, survey.workers)
    if run.place == NEW_CONTAINER:
        size = free if isinstance(free, int) else 0
        for finding in survey.limits:
            if finding.requirement.item == SHM_SIZE:
                yield _blame(finding, lambda: [blame_shared_memory(run, needed, size, survey.plan)])
        return
    place = survey.place if "container" in run.place else f"path:{SHM}"
    wanted = Requirement(place, "free", "value", _round_up(needed), unit="bytes")
    if isinstance(free, str):
        yield judge(wanted, Observation(None, "", free))
        return
    finding = Finding(
        PASS if free >= needed else FAIL, wanted, Observation(_round_down(free), _tell_how(survey))
    )
    yield _blame(finding, lambda: _blame_shm(survey, needed, free))


def _judge_full_shm(survey: Survey) -> Iterator[Finding]:
    """Yield that nothing is left of /dev/shm, where nobody says how much a run needs."""
    free = survey.free_shm
    if isinstance(free, int) and free < _PAGE and survey.run.place != NEW_CONTAINER:
        place = survey.place if "container" in survey.run.place else f"path:{SHM}"
        wanted = Requirement(place, "free", "value", _PAGE, unit="bytes")
        cause = blame_full_shm(survey.run.workers or 0)
        yield Finding(FAIL, wanted, Observation(free, _tell_how(survey)), (cause,))


def _tell_how(survey: Survey) -> str:
    quota = survey.shm_quota
    is_less = isinstance(quota, Quota) and quota.free == survey.free_shm
    return f"what its quota leaves of {SHM}" if is_less else f"statvfs of {SHM}"


def _blame_shm(survey: Survey, needed: int, free: int) -> list[Cause]:
    """Return what holds shared memory for nothing, and what else must change."""
    folder, causes = survey.runner.find_shm(), []
    quota = survey.shm_quota
    if isinstance(quota, Quota) and quota.free < needed:
        causes.append(blame_quota(survey.run, needed, quota, survey.plan))
        free = read_free(folder)
    left = find_leftovers(folder) if folder == SHM else []
    if left:
        paths = tuple(one.path for one in left)
        causes.append(blame_leftovers(survey.run, free, paths, sum_sizes(left)))
    if free + sum_sizes(left) >= needed:
        return causes
    causes.append(blame_shared_memory(survey.run, needed, free, survey.plan))
    if folder == SHM:
        from ..shared_memory.causes import find_shm_causes
        from ..shared_memory.check import gather_shm

        try:
            facts = gather_shm()
        except OSError:
            return causes
        larger = facts.size + needed - free - sum_sizes(left)
        causes += find_shm_causes(_round_up(larger), facts)
    return causes


def _check_memory(survey: Survey) -> Iterator[Finding]:
    run = survey.run
    needed = count_memory(run, survey.workers)
    note = f"; without {GIVE_BACK} a worker's heap may grow beyond that" if keeps_heap(run) else ""
    yield _judge_room(
        survey, "memory", needed, lambda room: blame_memory(run, needed, room, survey.plan), note
    )
    held = {"as": survey.mapped, "data": run.worker_memory}
    for item, size in held.items():
        for finding in _judge_item(survey, item, partial(blame_address_space, run, size, item)):
            if finding.observation.value != UNLIMITED or run.worker_memory:
                yield finding
    if run.pinned_buffer:
        yield from _check_memlock(survey, run.pinned_buffer)


def _judge_room(
    survey: Survey, item: str, needed: int, blame: Callable[[Room], Cause], note: str = ""
) -> Finding:
    """Judge against the least memory that is left of anything."""
    wanted = Requirement(survey.place, item, "value", _round_up(needed), unit="bytes")
    if isinstance(survey.rooms, str):
        return judge(wanted, Observation(None, "", survey.rooms))
    least = survey.rooms[0]
    killers = "".join(f"; {told}" for told in survey.runner.killers.notes)
    how = f"what is left of {least.where}{note}{killers}"
    seen = Observation(_round_down(least.free), how)
    finding = Finding(PASS if least.free >= needed else FAIL, wanted, seen)
    short = [room for room in survey.rooms if room.free < needed]
    return _blame(finding, lambda: [blame(room) for room in short])


def _check_memlock(survey: Survey, size: int) -> Iterator[Finding]:
    """Yield whether buffers can be locked; CAP_IPC_LOCK exempts from the limit."""
    if survey.runner.may_lock:
        wanted = Requirement(survey.place, "memlock", "soft", size, unit="bytes")
        yield Finding(PASS, wanted, Observation("not applied", "it has CAP_IPC_LOCK"))
        return
    yield from _judge_item(survey, "memlock", partial(blame_memlock, survey.run))


def _check_tasks(survey: Survey) -> Iterator[Finding]:
    """Yield whether the run may start its processes and threads; the user's others count too."""
    run, needed = survey.run, survey.needed_tasks
    wanted = Requirement(survey.place, TASKS, "value", needed)
    if isinstance(survey.task_rooms, str):
        yield judge(wanted, Observation(None, "", survey.task_rooms))
    else:
        least = survey.task_rooms[0]
        finding = judge(wanted, Observation(least.free, f"what is left of {least.where}"))
        short = [room for room in survey.task_rooms if room.free < needed]
        yield _blame(
            finding,
            lambda: [
                judge_tasks(run, blame_tasks(run, needed, room, survey.plan), room.free)
                for room in short
            ],
        )
    used, plan = survey.user_tasks, survey.plan
    yield from _judge_item(
        survey,
        "nproc",
        lambda soft: judge_tasks(run, blame_nproc(run, needed, used, soft, plan), soft - used),
    )


def _check_cpus(survey: Survey) -> Iterator[Finding]:
    run = survey.run
    many = survey.workers * run.loaders * run.ranks_per_node if survey.workers > 1 else 1
    wanted = Requirement(survey.place, "cpus", "value", many)
    if isinstance(survey.cpus, str):
        yield Finding(UNKNOWN, wanted, Observation(None, "", survey.cpus))
        return
    least = survey.cpus[0]
    finding = judge(wanted, Observation(max(int(least.number), 1), least.why))
    yield _blame(finding, lambda: [blame_cpus(run, least.number, least.why, survey.plan)])


def _check_deepspeed(survey: Survey) -> Iterator[Finding]:
    run, spread = survey.run, survey.run.deepspeed
    if spread:
        floor = find_floor(spread)
        note = f"; beside {format_size(floor.gpu)} on each GPU"
        yield _judge_room(
            survey,
            "model_states",
            floor.node,
            lambda room: blame_model_states(run, spread, floor, room),
            note,
        )


def _check_cache(survey: Survey) -> Iterator[Finding]:
    from .cache_check import check_cache  # Of runs that have one.

    yield from check_cache(survey.run)


def _check_cache_integrity(survey: Survey) -> Iterator[Finding]:
    from .files_check import check_cache_files

    yield from check_cache_files(survey.run, survey.options.time_limit)


def _check_output(survey: Survey) -> Iterator[Finding]:
    from .output_check import check_output

    yield from check_output(survey.run)
    yield from _judge_item(survey, "fsize", partial(blame_file_size, survey.run))


def _check_packages(survey: Survey) -> Iterator[Finding]:
    from .packages_check import check_packages

    yield from check_packages(survey.run)


def _check_gpus(survey: Survey) -> Iterator[Finding]:
    """Yield what is wrong with the GPUs; each must hold DeepSpeed's model states at least."""
    from .gpus_check import check_gpus

    run = survey.run
    if run.gpus and run.deepspeed and run.deepspeed.parameters:
        least = max(run.gpus.memory or 0, find_floor(run.deepspeed).gpu)
        run = run._replace(gpus=run.gpus._replace(memory=least))
    yield from check_gpus(run)


def _round_up(size: int) -> int:
    """Return whole MiB, which people can read."""
    return -(-size // _MIB) * _MIB


def _round_down(size: int) -> int:
    return size // _MIB * _MIB if _MIB < size < UNLIMITED else size


_LOOKS: dict[str, Callable[[Survey], Iterator[Finding]]] = {
    "descriptors": _check_descriptors,
    "shared_memory": _check_shared_memory,
    "memory": _check_memory,
    "tasks": _check_tasks,
    "cpus": _check_cpus,
    "deepspeed": _check_deepspeed,
    "cache": _check_cache,
    "cache_integrity": _check_cache_integrity,
    "output": _check_output,
    "packages": _check_packages,
    "gpus": _check_gpus,
}
