# SPDX-License-Identifier: GPL-3.0-or-later
"""A run is judged by the limits that its own words give it."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Finding
from mlhost_limits.training.loader import count_descriptors, count_memory, count_shared_memory
from mlhost_limits.training.policy import Training
from mlhost_limits.training.tasks import count_tasks
from mlhost_limits.words.facts import Stated
from mlhost_limits.words.stated import judge_stated, tell_stated

RUN = Training(
    workers=4,
    loaders=2,
    ranks_per_node=3,
    batch_size=2**20,
    tensors_per_batch=4,
    worker_memory=2**30,
    threads=2,
    checks=("shared_memory", "descriptors", "memory", "tasks", "cpus"),
)
ALONE = RUN._replace(workers=0)
AT = {name: f"job.sh:{name}" for name in ("memory", "shm", "nofile", "memlock", "pids", "cpus")}


def judge(run: Training, place: str = "job:slurm", **limits: Any) -> list[Finding]:
    return list(judge_stated(run, Stated(place, AT, **limits)))


def statuses(run: Training, place: str = "job:slurm", **limits: Any) -> list[str]:
    return [one.status for one in judge(run, place, **limits)]


@pytest.mark.parametrize("run", [RUN, ALONE, RUN._replace(workers=1)])
@pytest.mark.parametrize("name", ["shm", "nofile", "memory", "pids"])
def test_a_limit_is_enough_from_what_is_needed_on(name: str, run: Training) -> None:
    workers = run.workers or 0
    needed = {
        "shm": count_shared_memory(run, workers),
        "nofile": count_descriptors(run, workers),
        "memory": count_memory(run, workers),
        "pids": count_tasks(run, workers, 2),
    }[name]
    assert statuses(run, "job:slurm", **{name: needed}) == [PASS]
    if needed:
        assert statuses(run, "job:slurm", **{name: needed - 1}) == [FAIL]


@pytest.mark.parametrize(
    ("run", "cpus"), [(RUN, 24), (ALONE, 3), (RUN._replace(workers=1, ranks_per_node=1), 2)]
)
def test_each_worker_of_each_loader_of_each_rank_has_a_cpu(run: Training, cpus: int) -> None:
    assert statuses(run, cpus=float(cpus)) == [PASS]
    assert statuses(run, cpus=cpus - 0.5) == [FAIL]


def test_of_threads_that_nobody_states_each_process_has_one() -> None:
    run = RUN._replace(threads=None)
    assert statuses(run, pids=count_tasks(run, 4, 1)) == [PASS]


def test_only_what_is_asked_for_is_judged() -> None:
    run = RUN._replace(checks=("devices",))
    every: dict[str, Any] = {
        "memory": 1,
        "shm": 1,
        "nofile": 1,
        "memlock": 1,
        "pids": 1,
        "cpus": 1.0,
    }
    assert judge(run, **every) == []
    assert judge(RUN._replace(workers=None), **every) == []
    assert judge(RUN) == []


def test_nothing_is_bounded_by_what_the_run_does_not_say() -> None:
    run = RUN._replace(batch_size=None, tensors_per_batch=None, checks=("memory",))
    assert statuses(run, memory=2**40, shm=1, nofile=1) == [PASS]


@pytest.mark.parametrize(
    ("place", "told"),
    [("new-container:docker", [UNKNOWN]), ("pod:train", [UNKNOWN]), ("job:slurm", [])],
)
def test_descriptors_that_no_word_states_are_unknown(place: str, told: list[str]) -> None:
    assert statuses(RUN, place) == told


def test_a_buffer_that_is_locked_needs_memlock() -> None:
    run = RUN._replace(pinned_buffer=2**20)
    assert statuses(run, memlock=2**20) == [PASS]
    assert statuses(run, memlock=2**20 - 1) == [FAIL]
    assert statuses(run) == []
    assert statuses(RUN, memlock=1) == []


def test_a_container_may_have_as_much_memory_again() -> None:
    (finding,) = judge(RUN, memory=2**30)
    (cause,) = finding.causes
    assert "job:slurm (job.sh:memory)" in str(cause)


def test_every_limit_is_told_with_where_it_stands() -> None:
    stated = Stated(
        "job:slurm",
        AT,
        memory=2**30,
        shm=2**20,
        memlock=2**10,
        nofile=7,
        pids=9,
        cpus=1.5,
    )
    assert list(tell_stated(stated)) == [
        "job:slurm memory 1GiB (job.sh:memory)",
        "job:slurm shm_size 1MiB (job.sh:shm)",
        "job:slurm memlock 1KiB (job.sh:memlock)",
        "job:slurm nofile 7 (job.sh:nofile)",
        "job:slurm cpus 1.5 (job.sh:cpus)",
        "job:slurm tasks 9 (job.sh:pids)",
    ]
    assert list(tell_stated(Stated("job:slurm", AT))) == []
    assert list(tell_stated(Stated("p", AT, nofile=0))) == ["p nofile 0 (job.sh:nofile)"]


def test_what_is_asked_for_is_whole_megabytes() -> None:
    (finding,) = judge(RUN, shm=2**20)
    needed, mib = count_shared_memory(RUN, 4), 2**20
    assert finding.requirement.minimum == (needed + mib - 1) // mib * mib
    (finding,) = judge(RUN, memory=2**20)
    needed = count_memory(RUN, 4)
    assert finding.requirement.minimum == (needed + mib - 1) // mib * mib
