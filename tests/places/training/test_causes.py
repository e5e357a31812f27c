# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a run would not survive is one sentence with the numbers, and what would do another."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import Rlimit
from mlhost_limits.training.causes import (
    SLOWED,
    Room,
    blame_cpus,
    blame_descriptors,
    blame_file_handles,
    blame_leftovers,
    blame_memlock,
    blame_memory,
    blame_model_states,
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


HOST = Room("the host", GIB)
KILLED = ", so the kernel kills a process (exit -9), and torchrun ends the others with SIGTERM"
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
            f" the host has 1.0 GiB left{KILLED}{GUESS}",
        ),
        (
            Training(workers=1, deepspeed=DeepSpeed(2, GIB, None, offload_optimizer=True)),
            "1 process of 290.0 MiB and 1 worker of 16.0 MiB and 24.0 GiB of model states and 20.0"
            " GiB of them that forked workers keep as they were before a step need 2.0"
            f" GiB of memory, and the host has 1.0 GiB left{KILLED}{GUESS}; DeepSpeed's own"
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
    run = Training(deepspeed=DeepSpeed(stage=2))
    cause = blame_model_states(run, Floor(176 * GIB, GIB), room)
    assert cause.code == code
    assert cause.text.startswith(
        "ZeRO-2 keeps 117.3 GiB of model states on each node, and 176.0 GiB by DeepSpeed's own"
        " estimate, which adds half for buffers; activations, the framework and the data come on"
        " top; "
    )


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
    ],
)
def test_cpus(run: Training, text: str) -> None:
    told = f"{text}; it is tight: it is slow, and does not die of it"
    assert blame_cpus(run, 1.5, "quota", PLAN).text == told


def test_all_bounds_are_told() -> None:
    assert blame_workers(RUN, PLAN).text == (
        "of 8 workers in each rank 7 fit: nofile 7 (soft limit 160), memory 9 (1.0 GiB left of x)"
    )
