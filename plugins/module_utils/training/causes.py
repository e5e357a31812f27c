# SPDX-License-Identifier: BSD-2-Clause
"""Say why a run would not survive on a host: what it needs, what there is, and what would do."""

from __future__ import annotations

import re

from ..core.cause import Cause, Remedy
from ..core.quote import one_line
from ..core.values import NamedTuple, Rlimit, format_quantity
from ..shared_memory.model import Quota, find_size_for
from .collectives import find_groups, find_world
from .loader import (
    MEMORY,
    Plan,
    find_batch_share,
    find_hold,
    find_own_memory,
    find_worker_memory,
    format_size,
    passes_descriptors,
)
from .model_states import BUFFERS, Floor, find_kept_states, find_model_states
from .policy import DeepSpeed, Training
from .verdict import (
    SURE,
    Verdict,
    add_verdict,
    be_tight,
    count_least_files,
    count_least_mapped,
    count_least_mappings,
    count_least_memory,
    count_least_shm,
    decide,
)
from .ways_out import fetch_less, keep_no_states, share_by_name, spread_otherwise, tell_raise

CODES = {
    "run-descriptors": "the run opens more descriptors than its process may",
    "run-file-handles": "the run opens more files than the host has left for all",
    "run-mappings": "the batches that the run keeps take more mappings than a process may have",
    "run-shared-memory": "the batches under way do not fit into /dev/shm",
    "run-shared-memory-quota": "the user may take 80 % of /dev/shm, and that is too little",
    "run-shared-memory-leftovers": "files of runs that ended fill /dev/shm",
    "run-memory-cgroup": "a cgroup allows less memory than the run needs",
    "run-memory-high": "a cgroup slows down whoever takes as much memory as the run needs",
    "run-memory-host": "the host has less memory left than the run needs",
    "run-memlock": "the run locks more memory than its process may, and nothing exempts it",
    "run-address-space": "a worker holds more data than a process may map",
    "run-file-size": "a checkpoint is larger than a file may grow",
    "run-tasks": "the run starts more processes and threads than it may",
    "run-cpus": "the run has more workers than CPUs",
    "run-workers": "the run has more workers than the host can carry",
}

_MAPPED = {"as": "address space", "data": "private memory"}
_MIB = 2**20
DOCKER = re.compile(r"/docker[-/]([0-9a-f]{12,64})(?:\.scope)?(?:/|$)")
UNIT = re.compile(r"[A-Za-z0-9:_.@-]+\.(?:service|slice|scope)")


_SLOW_ONE = "so many only while one worker is slow"
_AHEAD = "so much only while the workers are ahead"
_OTHERS = ", and torchrun ends the others with SIGTERM"
SLOWED = "the kernel slows it to a crawl (memory.high), until it gives memory back or is killed"


class Room(NamedTuple):
    """How much memory is left, in bytes: where, and what is used there.

    ``limit`` is ``None`` for the host itself. ``end`` is what becomes of a run that takes more.
    ``most`` is what there could be at most, were all else gone, with swap.
    """

    where: str
    free: int
    used: int = 0
    limit: int | None = None
    end: str = ""
    most: int | None = None

    @property
    def is_high(self) -> bool:
        return self.end == SLOWED


def blame_descriptors(run: Training, needed: int, has: Rlimit, plan: Plan) -> Cause:
    """Say why a run ends with "Too many open files"."""
    soft, hard = has
    held, one = _name(run.workers), run.workers == 1
    if passes_descriptors(run):
        tensors = _number(run.tensors_per_batch or 0, "tensor", "tensors")
        ahead = _number(run.prefetch, "batch", "batches")
        held += f" that {'prefetches' if one else 'prefetch'} {ahead} of {tensors}"
    groups = find_groups(run)
    if groups:
        group = _number(groups, "process group", "process groups")
        held, one = f"{held}, and {group} of {_number(find_world(run), 'rank', 'ranks')},", False
    text = (
        f"{held} {'has' if one else 'have'} {needed} files open in one process, and its soft limit"
        f' is {soft}, so the run ends with "Too many open files"'
    )
    fix = f"allow {needed} files where the run starts: ulimit -n {needed}"
    if hard < needed:
        fix = f"raise the hard limit, which is {hard}, and the soft limit to {needed}"
    fix = f"{tell_fit(plan)}, or {fix}{share_by_name(run)}"
    verdict = decide(run, soft, count_least_files, _SLOW_ONE)
    return add_verdict(Cause("run-descriptors", text, Remedy(fix)), verdict)


def blame_file_handles(run: Training, needed: int, used: int, most: int) -> Cause:
    """Say why a run ends with "Too many open files in system"."""
    one = run.ranks_per_node == 1
    ranks = _number(run.ranks_per_node, "rank", "ranks")
    text = (
        f"{ranks} with {_name(run.workers)} {'opens' if one else 'each open'}"
        f" up to {needed} files, and fs.file-max {most} leaves {max(most - used, 0)}"
    )
    cause = Cause("run-file-handles", text, Remedy(f"allow {used + needed} files on the host"))
    return be_tight(cause, "what others have open may be less by then, and root is exempt")


def blame_mappings(run: Training, needed: int, most: int) -> Cause:
    """Say why a run ends with "Cannot allocate memory" while memory is left."""
    text = (
        f"{_number(run.tensors_per_batch or 0, 'tensor', 'tensors')} of a batch are a mapping each,"
        f" and the program keeps {_number(find_hold(run), 'batch', 'batches')} beside the current"
        f" one: that takes {needed} mappings, a process may have {most}, and the run ends with"
        ' "unable to mmap: Cannot allocate memory (12)"'
    )
    fix = "keep fewer batches, or copy what is kept (tensor.clone()), or join tensors into fewer"
    fix += f", or raise vm.max_map_count to {needed}"
    verdict = decide(run, most, count_least_mappings, _SLOW_ONE)
    return add_verdict(Cause("run-mappings", text, Remedy(fix)), verdict)


def blame_shared_memory(run: Training, needed: int, free: int, plan: Plan) -> Cause:
    """Say why a run ends with "No space left on device", or with a bus error."""
    text = (
        f"{_name(_count(run))} with {_number(run.prefetch, 'batch', 'batches')} of"
        f" {format_size(find_batch_share(run))} each under way take {format_size(needed)} of"
        f" shared memory, and {format_size(free)} are free"
    )
    more = f"or make /dev/shm {format_size(needed - free)} larger (of a container: --shm-size)"
    cause = Cause("run-shared-memory", text, Remedy(f"{tell_fit(plan)}{fetch_less(run)}, {more}"))
    return add_verdict(cause, _decide_shm(run, free))


def _decide_shm(run: Training, free: int) -> Verdict:
    return decide(run, free, count_least_shm, _AHEAD, format_size)


def blame_full_shm(workers: int) -> Cause:
    """Say that workers have no shared memory at all."""
    text = f"nothing of /dev/shm is free, and {_name(workers)} put every batch there"
    cause = Cause("run-shared-memory", text, Remedy("remove what nobody needs from /dev/shm"))
    return add_verdict(cause, SURE)


def blame_quota(run: Training, needed: int, quota: Quota, plan: Plan) -> Cause:
    """Say that a user may take less of /dev/shm than is free there."""
    size = format_size(find_size_for(needed + quota.used))
    when = "may take" if quota.is_set else "may take, from the next login on,"
    text = (
        f"whoever runs it {when} {format_size(quota.limit)} of /dev/shm, the 80 % that systemd 258"
        f" and later allow, and has taken {format_size(quota.used)}; statvfs and df do not show it"
    )
    fix = f"{tell_fit(plan)}, or make /dev/shm {size} at least, end every session of the user"
    cause = Cause("run-shared-memory-quota", text, Remedy(f"{fix} and log in again"))
    return add_verdict(cause, _decide_shm(run, quota.free))


def blame_leftovers(run: Training, free: int, paths: tuple[str, ...], size: int) -> Cause:
    """Say what holds shared memory that no process uses."""
    shown = ", ".join(map(one_line, paths[:3]))
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    take, them = ("takes", "it") if len(paths) == 1 else ("take", "them")
    text = f"{shown}{more} {take} {format_size(size)}, and no process has {them} mapped or open"
    commands = (("rm", "-f", "--", *paths),) if len(paths) <= 100 else ()
    cause = Cause("run-shared-memory-leftovers", text, Remedy(f"remove {them}", commands))
    return add_verdict(cause, _decide_shm(run, free))


def blame_memory(run: Training, needed: int, room: Room, plan: Plan) -> Cause:
    """Say why the kernel kills a process of a run, whose launcher then ends the others."""
    text = (
        f"{_describe_memory(run)} need {format_size(needed)} of memory, and"
        f" {_describe_room(room)}, so {_tell_end(run, room)}"
    )
    fits = any(bound.name == MEMORY for bound in plan.bounds)
    fix = tell_fit(plan) if fits else "use a smaller model, smaller buffers or more nodes"
    fix += keep_no_states(run)
    remedy = raise_memory(f"{fix}, or give it more memory", needed, room)
    return _add_verdict_of_memory(run, Cause(_code(room), text, remedy), room)


def _add_verdict_of_memory(run: Training, cause: Cause, room: Room) -> Cause:
    if room.is_high:
        return be_tight(cause, "it is slow there, and what kills it is another limit")
    why = ["what a process and a worker take beside their data was measured, and may be less"]
    if run.deepspeed:
        all_of_it = "" if run.deepspeed.trainable_parameters else " and all parameters trained"
        why.append(f"DeepSpeed's own estimate of model states is for Adam{all_of_it}, with buffers")
    verdict = decide(run, room.most, count_least_memory, "; ".join(why), format_size)
    return add_verdict(cause, verdict)


def _code(room: Room) -> str:
    if room.is_high:
        return "run-memory-high"
    return "run-memory-host" if room.limit is None else "run-memory-cgroup"


def blame_model_states(run: Training, spread: DeepSpeed, floor: Floor, room: Room) -> Cause:
    """Say why the states of a model do not fit, whatever else a run needs."""
    states = int(floor.node / BUFFERS)
    end = _tell_end(run, room, "rank")
    text = (
        f"ZeRO-{spread.stage} keeps {format_size(states)} of model states on each node, and"
        f" {format_size(floor.node)} by DeepSpeed's own estimate, which adds half for buffers;"
        " activations, the framework and the data come on top;"
        f" {_describe_room(room)}, so {end}"
    )
    fix = "use more nodes or a smaller model, or give it more memory"
    if not spread.trainable_parameters:
        fix += "; where few parameters are trained (LoRA), state trainable_parameters"
    fix += spread_otherwise(spread, room.free)
    cause = Cause(_code(room), text, raise_memory(fix, floor.node, room))
    return _add_verdict_of_memory(run._replace(workers=0), cause, room)


def blame_memlock(run: Training, soft: int, place: str = "") -> Cause:
    """Say why a run cannot lock its buffers: errno 12, and no Python exception."""
    text = (
        f"each rank locks {format_size(run.pinned_buffer or 0)} of memory, its limit is"
        f" {format_quantity(soft, 'bytes')}, and it has no CAP_IPC_LOCK, which would exempt it;"
        ' so mlock or ibv_reg_mr says "Cannot allocate memory"'
    )
    how = tell_raise(place or run.place, "memlock", run.pinned_buffer or 0)
    remedy = Remedy(f"raise memlock for the process that will run: {how}")
    return add_verdict(Cause("run-memlock", text, remedy), SURE)


def blame_address_space(run: Training, size: int, item: str, soft: int) -> Cause:
    """Say why a process cannot map or hold so much: MemoryError, whatever the host has left."""
    held = f"maps {format_size(size)}" if item == "as" else f"holds {format_size(size)} of data"
    text = (
        f"a process of the run {held}, its limit of {_MAPPED[item]}"
        f" ({item}) is {format_quantity(soft, 'bytes')}, and the host's memory does not help it:"
        ' the run ends with MemoryError, or with "Cannot allocate memory"'
    )
    how = tell_raise(run.place, item, size)
    remedy = Remedy(f"raise {item} for the process that will run: {how}; unlimited is usual")
    why = "what a process maps of its own was measured, and may be less"
    verdict = decide(run, soft, count_least_mapped, why, format_size)
    return add_verdict(Cause("run-address-space", text, remedy), verdict)


def blame_file_size(run: Training, soft: int) -> Cause:
    """Say why a checkpoint is cut off: errno 27, or a signal that ends the process."""
    text = (
        f"a checkpoint takes {format_size(run.checkpoint_size or 0)}, and no file may grow beyond"
        f" {format_quantity(soft, 'bytes')}: where it is one file, saving it ends with"
        " [Errno 27] File too large, and what was written is cut off"
    )
    remedy = Remedy(
        "raise fsize for the process that will run; unlimited is usual. Or save in smaller files:"
        " transformers has max_shard_size"
    )
    return be_tight(Cause("run-file-size", text, remedy), "a checkpoint may be many smaller files")


def blame_cpus(run: Training, cpus: float, why: str, plan: Plan) -> Cause:
    """Say why workers wait for each other."""
    ranks = f" on {run.ranks_per_node} ranks" if run.ranks_per_node > 1 else ""
    text = f"{_name(_count(run))}{ranks} share {cpus:g} CPUs ({why}), so they wait for each other"
    cause = Cause("run-cpus", text, Remedy(f"{tell_fit(plan)}, or give the run more CPUs"))
    return be_tight(cause, "it is slow, and does not die of it")


def blame_workers(run: Training, plan: Plan) -> Cause:
    """Say how many workers fit, and what each bound allows."""
    text = f"of {_name(run.workers)} in each rank {plan.workers} fit: {plan.reasons}"
    return Cause("run-workers", text, Remedy(tell_fit(plan)))


def tell_fit(plan: Plan) -> str:
    """Return how many workers to start, in words."""
    if not plan.workers:
        return "load batches in the main process (0 workers), for not even one fits"
    return f"start at most {_name(plan.workers)} in each rank"


def _name(workers: int | None) -> str:
    return _number(workers or 0, "worker", "workers")


def _number(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _count(run: Training) -> int:
    return (run.workers or 0) * run.loaders * run.ranks_per_node


def _describe_memory(run: Training) -> str:
    each, own = format_size(find_worker_memory(run)), format_size(find_own_memory(run))
    words = [f"{_number(run.ranks_per_node, 'process', 'processes')} of {own}"]
    words += [f"{_name(_count(run))} of {each}"] if run.workers else []
    if run.workers and run.batch_size:
        words.append("their batches in /dev/shm")
    if run.pinned_buffer:
        words.append(f"{run.ranks_per_node} x {format_size(run.pinned_buffer)} of locked buffers")
    if run.deepspeed:
        words.append(f"{format_size(find_model_states(run))} of model states")
    if run.workers and find_kept_states(run):
        kept = format_size(find_kept_states(run))
        words.append(f"{kept} of them that forked workers keep as they were before a step")
    return " and ".join(words)


def _tell_end(run: Training, room: Room, who: str = "process") -> str:
    """Return what comes of it; where there is one process alone, it ends no others."""
    spread = run.deepspeed
    several = run.ranks_per_node * (spread.gpus_per_node * spread.nodes if spread else 1) > 1
    return room.end or f"the kernel kills a {who} (exit -9){_OTHERS * several}"


def _describe_room(room: Room) -> str:
    if room.limit is None:
        return f"{room.where} has {format_size(room.free)} left"
    return (
        f"{one_line(room.where)} allows {format_size(room.limit)}, of which"
        f" {format_size(room.free)} are left"
    )


def raise_memory(text: str, needed: int, room: Room) -> Remedy:
    """Return how a cgroup gets enough: by who made it, for only that keeps it."""
    if room.limit is None:
        return Remedy(text)
    size = str(-(-(room.used + needed) // _MIB) * _MIB)
    container, name = DOCKER.search(room.where), room.where.rpartition("/")[2]
    if container and not room.is_high:
        words = ("docker", "update", "--memory", size, "--memory-swap", size, container[1])
        return Remedy(text, (words,))
    if "slurm" in room.where:
        return Remedy(f"{text}: ask Slurm for it with --mem={int(size) // _MIB}M")
    if UNIT.fullmatch(name):
        first = "MemoryLimit" if "/memory/" in room.where else "MemoryMax"
        first = "MemoryHigh" if room.is_high else first
        return Remedy(text, (("systemctl", "set-property", name, f"{first}={size}"),))
    return Remedy(text)
