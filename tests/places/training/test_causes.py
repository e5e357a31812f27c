# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a run would not survive is one sentence with the numbers, and what would do another."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import Rlimit
from mlhost_limits.shared_memory.model import Quota
from mlhost_limits.training.causes import (
    SLOWED,
    Room,
    blame_address_space,
    blame_cpus,
    blame_descriptors,
    blame_file_handles,
    blame_leftovers,
    blame_memlock,
    blame_memory,
    blame_model_states,
    blame_quota,
    blame_shared_memory,
    blame_workers,
)
from mlhost_limits.training.loader import Bound, Plan
from mlhost_limits.training.model_states import Floor
from mlhost_limits.training.policy import DeepSpeed, Training

MIB, GIB = 2**20, 2**30
RUN = Training(workers=8, prefetch=4, tensors_per_batch=4, batch_size=MIB, ranks_per_node=2)
PLAN = Plan(7, (Bound("nofile", 7, "soft limit 160"), Bound("memory", 9, "1.0 GiB left of x")))
NONE = Plan(0, ())
SLOW = "; it is tight, an estimate: so many only while one worker is slow"


@pytest.mark.parametrize(
    ("run", "has", "text", "fix"),
    [
        (
            RUN,
            Rlimit(160, 4096),
            "8 workers that prefetch 4 batches of 4 tensors, and 1 process group of 2 ranks, have 161"
            " files open in one process, and its soft limit is 160, so the run ends with "
            f'"Too many open files"{SLOW}',
            "start at most 7 workers in each rank, or allow 161 files where the run starts: ulimit"
            " -n 161, or share by name (sharing file_system), which needs 65 files and 71.6 MiB of"
            " /dev/shm",
        ),
        (
            RUN._replace(workers=1, prefetch=1, groups=0),
            Rlimit(160, 160),
            "1 worker that prefetches 1 batch of 4 tensors has 161 files open in one process, and"
            ' its soft limit is 160, so the run ends with "Too many open files"; it is tight, an estimate: so many only'
            " while one worker is slow",
            "start at most 7 workers in each rank, or raise the hard limit, which is 160, and the"
            " soft limit to 161, or share by name (sharing file_system), which needs 13 files and"
            " 8.3 MiB of /dev/shm",
        ),
        (
            RUN._replace(sharing="file_system", groups=0),
            Rlimit(160, 160),
            "8 workers have 161 files open in one process, and its soft limit is 160, so the run"
            f' ends with "Too many open files"{SLOW}',
            "start at most 7 workers in each rank, or raise the hard limit, which is 160, and the"
            " soft limit to 161",
        ),
    ],
)
def test_descriptors(run: Training, has: Rlimit, text: str, fix: str) -> None:
    cause = blame_descriptors(run, 161, has, PLAN)
    assert (cause.text, cause.remedy.text) == (text, fix)


def test_not_even_one_worker() -> None:
    fix = blame_workers(RUN, NONE).remedy.text
    assert fix == "load batches in the main process (0 workers), for not even one fits"


@pytest.mark.parametrize(
    ("hard", "fix"),
    [(160, "raise the hard limit, which is 160,"), (161, "allow 161 files where the run starts")],
)
def test_a_hard_limit_that_just_suffices_stays(hard: int, fix: str) -> None:
    cause = blame_descriptors(RUN, 161, Rlimit(100, hard), PLAN)
    assert f"in each rank, or {fix}" in cause.remedy.text


@pytest.mark.parametrize(
    ("bounds", "fix"),
    [
        (PLAN.bounds, "start at most 7 workers in each rank"),
        (PLAN.bounds[1:], "start at most 7 workers in each rank"),
        (PLAN.bounds[:1], "use a smaller model, smaller buffers or more nodes"),
    ],
)
def test_fewer_workers_help_where_memory_bounds_them(bounds: tuple[Bound, ...], fix: str) -> None:
    told = blame_memory(RUN, 2 * GIB, HOST, Plan(7, bounds)).remedy.text
    assert told == f"{fix}, or give it more memory"


def test_one_worker() -> None:
    assert blame_workers(RUN, Plan(1, ())).remedy.text == "start at most 1 worker in each rank"


def test_files_of_the_host() -> None:
    cause = blame_file_handles(RUN, 322, 900, 1000)
    assert cause.text == (
        "2 ranks with 8 workers each open up to 322 files, and fs.file-max 1000 leaves 100; it is"
        " tight: what others have open may be less by then, and root is exempt"
    )
    assert cause.remedy.text == "allow 1222 files on the host"
    alone = blame_file_handles(RUN._replace(ranks_per_node=1), 322, 900, 1000)
    assert alone.text.startswith("1 rank with 8 workers opens up to 322 files, and ")


def test_shared_memory() -> None:
    cause = blame_shared_memory(RUN, 70 * MIB, 64 * MIB, PLAN)
    assert cause.text == (
        "16 workers with 4 batches of 1.0 MiB each under way take 70.0 MiB of shared memory, and"
        " 64.0 MiB are free; it is tight, an estimate: so much only while the workers are ahead"
    )
    assert cause.remedy.text == (
        "start at most 7 workers in each rank, or prefetch 1 batch, which needs 22.8 MiB, or make"
        " /dev/shm 6.0 MiB larger (of a container: --shm-size)"
    )


def test_leftovers_are_removed_by_name() -> None:
    cause = blame_leftovers(RUN, 0, ("/dev/shm/torch_1_2_0", "/dev/shm/nccl-a\n"), GIB)
    assert cause.text == (
        "/dev/shm/torch_1_2_0, /dev/shm/nccl-a? take 1.0 GiB, and no process has them mapped or"
        " open; it cannot run: at least 2.0 MiB are needed"
    )
    assert cause.remedy.commands == (
        ("rm", "-f", "--", "/dev/shm/torch_1_2_0", "/dev/shm/nccl-a\n"),
    )


def test_one_leftover_is_told_as_one() -> None:
    cause = blame_leftovers(RUN, 0, ("/dev/shm/torch_1",), GIB)
    assert cause.text == (
        "/dev/shm/torch_1 takes 1.0 GiB, and no process has it mapped or open; it cannot run: at least 2.0 MiB are needed"
    )
    assert cause.remedy.text == "remove it"


def test_many_leftovers_are_counted() -> None:
    cause = blame_leftovers(RUN, 0, tuple(f"/dev/shm/nccl-{n}" for n in range(101)), GIB)
    assert cause.text.startswith("/dev/shm/nccl-0, /dev/shm/nccl-1, /dev/shm/nccl-2 and 98 more")
    assert cause.remedy.commands == ()


@pytest.mark.parametrize(
    ("number", "shown", "is_removed"),
    [
        (3, "/dev/shm/2 take 1.0 GiB", True),
        (4, "/dev/shm/2 and 1 more take 1.0 GiB", True),
        (100, "/dev/shm/2 and 97 more take 1.0 GiB", True),
        (101, "/dev/shm/2 and 98 more take 1.0 GiB", False),
    ],
)
def test_three_leftovers_are_named_and_100_removed(
    number: int, shown: str, is_removed: bool
) -> None:
    cause = blame_leftovers(RUN, 0, tuple(f"/dev/shm/{n}" for n in range(number)), GIB)
    assert cause.text.startswith(f"/dev/shm/0, /dev/shm/1, {shown}, and no process has them")
    assert bool(cause.remedy.commands) is is_removed


HOST = Room("the host", GIB)
ALONE = ", so the kernel kills a process (exit -9)"
KILLED = f"{ALONE}, and torchrun ends the others with SIGTERM"
GUESS = (
    "; it is tight, an estimate: what a process and a worker take beside their data was measured,"
    " and may be less"
)


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (
            RUN,
            "2 processes of 160.0 MiB and 16 workers of 19.5 MiB and their batches in /dev/shm need"
            f" 2.0 GiB of memory, and the host has 1.0 GiB left{KILLED}{GUESS}",
        ),
        (
            Training(workers=0, pinned_buffer=2 * GIB),
            "1 process of 160.0 MiB and 1 x 2.0 GiB of locked buffers need 2.0 GiB of memory, and"
            f" the host has 1.0 GiB left{ALONE}{GUESS}",
        ),
        (
            Training(workers=1, deepspeed=DeepSpeed(2, GIB, None, offload_optimizer=True)),
            "1 process of 290.0 MiB and 1 worker of 16.0 MiB and 24.0 GiB of model states and 20.0"
            " GiB of them that forked workers keep as they were before a step need 2.0"
            f" GiB of memory, and the host has 1.0 GiB left{ALONE}{GUESS}; DeepSpeed's own"
            " estimate of model states is for Adam and all parameters trained, with buffers",
        ),
    ],
)
def test_memory_of_the_host(run: Training, text: str) -> None:
    cause = blame_memory(run, 2 * GIB, HOST, NONE)
    assert (cause.code, cause.text, cause.remedy.commands) == ("run-memory-host", text, ())
    spawned = (
        ", or start workers by spawn, or pin what is offloaded (pin_memory), which takes 19.9 GiB less"
        if run.deepspeed
        else ""
    )
    assert cause.remedy.text == (
        f"use a smaller model, smaller buffers or more nodes{spawned}, or give it more memory"
    )


@pytest.mark.parametrize(
    ("where", "text", "commands"),
    [
        (
            "/sys/fs/cgroup/user.slice/user-1000.slice",
            "",
            (("systemctl", "set-property", "user-1000.slice", "MemoryMax=2253389824"),),
        ),
        (
            "/sys/fs/cgroup/memory/system.slice/train.service",
            "",
            (("systemctl", "set-property", "train.service", "MemoryLimit=2253389824"),),
        ),
        (
            "/sys/fs/cgroup/system.slice/docker-0123456789ab.scope",
            "",
            (
                ("docker", "update", "--memory", "2253389824", "--memory-swap", "2253389824")
                + ("0123456789ab",),
            ),
        ),
        ("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7", ": ask Slurm for it with --mem=2149M", ()),
        ("/sys/fs/cgroup/mine", "", ()),
    ],
)  # fmt: skip
def test_memory_of_a_cgroup(where: str, text: str, commands: object) -> None:
    room = Room(where, GIB, 100 * MIB, GIB + 100 * MIB)
    cause = blame_memory(RUN, 2 * GIB + 1, room, PLAN)
    assert cause.code == "run-memory-cgroup"
    assert f"{where} allows 1.1 GiB, of which 1.0 GiB are left, so the kernel" in cause.text
    assert cause.remedy.text == (
        f"start at most 7 workers in each rank, or give it more memory{text}"
    )
    assert cause.remedy.commands == commands


def test_memory_high_slows_and_kills_nobody() -> None:
    room = Room("/sys/fs/cgroup/system.slice/train.service", GIB, 0, GIB, SLOWED)
    cause = blame_memory(RUN, 2 * GIB, room, PLAN)
    assert (cause.code, f", so {SLOWED}; it is tight: it is slow" in cause.text) == (
        "run-memory-high",
        True,
    )
    assert cause.remedy.commands == (
        ("systemctl", "set-property", "train.service", f"MemoryHigh={2 * GIB}"),
    )
    docker = room._replace(where="/sys/fs/cgroup/system.slice/docker-0123456789ab.scope")
    (words,) = blame_memory(RUN, 2 * GIB, docker, PLAN).remedy.commands
    assert words[0] == "systemctl"  # Docker has no word for it.


def test_earlyoom_is_named_as_who_kills() -> None:
    room = Room("the host above earlyoom's bound", GIB, end="earlyoom kills the largest process")
    cause = blame_memory(RUN, 2 * GIB, room, PLAN)
    assert (cause.code, f"so earlyoom kills the largest process{GUESS}" in cause.text) == (
        "run-memory-host",
        True,
    )


@pytest.mark.parametrize(
    ("room", "code"), [(HOST, "run-memory-host"), (Room("/x", 1, 1, 2), "run-memory-cgroup")]
)
def test_model_states(room: Room, code: str) -> None:
    spread = DeepSpeed(2, 7 * 10**9, gpus_per_node=2)
    cause = blame_model_states(Training(deepspeed=spread), spread, Floor(176 * GIB, GIB), room)
    assert cause.code == code
    assert cause.text.startswith(
        "ZeRO-2 keeps 117.3 GiB of model states on each node, and 176.0 GiB by DeepSpeed's own"
        " estimate, which adds half for buffers; activations, the framework and the data come on"
        " top; "
    )
    assert ", so the kernel kills a rank (exit -9), and torchrun ends" in cause.text
    assert cause.remedy.text == (
        "use more nodes or a smaller model, or give it more memory; where few parameters are"
        " trained (LoRA), state trainable_parameters"
    )


def test_model_states_of_some_parameters_and_of_a_room_with_an_end() -> None:
    spread = DeepSpeed(2, 10**9, trainable_parameters=10**8, offload_optimizer=True)
    run = Training(workers=8, worker_memory=GIB, deepspeed=spread)
    room = Room("the host", GIB, end="earlyoom kills the largest process", most=8 * GIB - 1)
    cause = blame_model_states(run, spread, Floor(176 * GIB, GIB), room)
    assert "so earlyoom kills the largest process; it is tight" in cause.text
    few = room._replace(free=4 * 10**9 * 3 // 2, most=8 * 10**8)
    cause = blame_model_states(run, spread, Floor(176 * GIB, GIB), few)
    assert cause.verdict == "tight", "its workers are not counted"
    assert "LoRA" not in cause.remedy.text
    assert "; ZeRO-2 without offload needs 5.6 GiB, and" in cause.remedy.text


@pytest.mark.parametrize(
    ("place", "fix"),
    [
        ("", "LimitMEMLOCK=1073741824 in train.service"),
        ("self", "ulimit -l 1048576 where it starts"),
    ],
)
def test_locked_memory_is_raised_where_it_runs(place: str, fix: str) -> None:
    run = Training(pinned_buffer=GIB, place="service:train.service")
    told = blame_memlock(run, 65536, place).remedy.text
    assert told == f"raise memlock for the process that will run: {fix}"


@pytest.mark.parametrize(
    ("item", "held"),
    [
        ("as", "maps 2.0 GiB, its limit of address space (as) is 1GiB"),
        ("data", "holds 2.0 GiB of data, its limit of private memory (data) is 1GiB"),
    ],
)
def test_what_a_process_maps_or_holds(item: str, held: str) -> None:
    cause = blame_address_space(RUN, 2 * GIB, item, GIB)
    assert cause.text.startswith(f"a process of the run {held}, and the host's memory")


@pytest.mark.parametrize(
    ("quota", "when"),
    [
        (Quota(80 * MIB, 16 * MIB), "may take 80.0 MiB"),
        (Quota(80 * MIB, 16 * MIB, False), "may take, from the next login on, 80.0 MiB"),
    ],
)
def test_a_quota_is_raised_with_what_was_taken(quota: Quota, when: str) -> None:
    cause = blame_quota(RUN, 96 * MIB, quota, PLAN)
    assert cause.text.startswith(f"whoever runs it {when} of /dev/shm, the 80 % that")
    assert "or make /dev/shm 140.0 MiB at least, end every session" in cause.remedy.text


def test_locked_memory() -> None:
    assert blame_memlock(Training(pinned_buffer=GIB), 65536).text == (
        "each rank locks 1.0 GiB of memory, its limit is 64KiB, and it has no CAP_IPC_LOCK, which"
        ' would exempt it; so mlock or ibv_reg_mr says "Cannot allocate memory"; it cannot run'
    )


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (RUN, "16 workers on 2 ranks share 1.5 CPUs (quota), so they wait for each other"),
        (Training(workers=4), "4 workers share 1.5 CPUs (quota), so they wait for each other"),
        (
            Training(workers=4, loaders=2),
            "8 workers share 1.5 CPUs (quota), so they wait for each other",
        ),
    ],
)
def test_cpus(run: Training, text: str) -> None:
    told = f"{text}; it is tight: it is slow, and does not die of it"
    assert blame_cpus(run, 1.5, "quota", PLAN).text == told


def test_all_bounds_are_told() -> None:
    assert blame_workers(RUN, PLAN).text == (
        "of 8 workers in each rank 7 fit: nofile 7 (soft limit 160), memory 9 (1.0 GiB left of x)"
    )
