# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said to kill every run is less than what is counted, and nothing assumed is in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.cause import Cause, Remedy
from mlhost_limits.core.finding import FAIL, PASS, WAIVED, Finding, Observation, Requirement
from mlhost_limits.core.no_go import CANNOT, TIGHT, tell_no_go
from mlhost_limits.core.report import format_report
from mlhost_limits.core.values import Rlimit
from mlhost_limits.training import loader, verdict
from mlhost_limits.training.causes import (
    SLOWED,
    Room,
    blame_address_space,
    blame_descriptors,
    blame_file_size,
    blame_mappings,
    blame_memlock,
    blame_memory,
    blame_model_states,
    blame_shared_memory,
)
from mlhost_limits.training.folder_rules import CODES, blame
from mlhost_limits.training.loader import Plan
from mlhost_limits.training.model_states import find_floor
from mlhost_limits.training.policy import DeepSpeed, Gpus, Training
from mlhost_limits.training.tasks import count_tasks
from mlhost_limits.training.verdict import judge_tasks, settle

MIB, GIB = 2**20, 2**30
NONE = Plan(0, ())
RUN = Training(workers=8, prefetch=4, tensors_per_batch=4, batch_size=MIB)
TRAINED = DeepSpeed(3, 10**9, 10**6, 1, 1, True, True, True, 10**9)

RUNS = st.builds(
    Training,
    workers=st.integers(0, 64),
    prefetch=st.integers(1, 8),
    tensors_per_batch=st.integers(1, 64),
    batch_size=st.integers(0, GIB),
    hold=st.integers(0, 9),
    loaders=st.integers(1, 3),
    epochs=st.integers(1, 2),
    library=st.sampled_from(("torch", "accelerate", "transformers", "trl")),
    sharing=st.sampled_from(("file_descriptor", "file_system")),
    start_method=st.sampled_from(("fork", "spawn", "forkserver")),
    ranks_per_node=st.integers(1, 8),
    worker_memory=st.integers(0, GIB),
    pinned_buffer=st.none() | st.integers(1, GIB),
    deepspeed=st.none()
    | st.builds(
        DeepSpeed,
        stage=st.sampled_from((2, 3)),
        parameters=st.just(10**9),
        largest_layer=st.integers(1, 10**8),
        gpus_per_node=st.integers(1, 8),
        nodes=st.integers(1, 4),
        offload_optimizer=st.booleans(),
        offload_parameters=st.booleans(),
        zero_init=st.booleans(),
        trainable_parameters=st.none() | st.integers(1, 10**9),
    ),
)


@given(RUNS)
def test_no_run_is_said_to_need_more_at_least_than_is_counted(run: Training) -> None:
    workers = run.workers or 0
    pairs = {
        "files": (verdict.count_least_files(run), loader.count_descriptors(run, workers)),
        "mappings": (verdict.count_least_mappings(run), loader.count_mappings(run, workers)),
        "shm": (verdict.count_least_shm(run), loader.count_shared_memory(run, workers)),
        "tasks": (verdict.count_least_tasks(run), count_tasks(run, workers, 1)),
        "memory": (verdict.count_least_memory(run), loader.count_memory(run, workers)),
        "mapped": (verdict.count_least_mapped(run), loader.count_addresses(run, workers)),
    }
    if run.deepspeed and run.deepspeed.offload_parameters and not run.deepspeed.offload_optimizer:
        del pairs["memory"]  # DeepSpeed has no such run.
    assert {name: pair for name, pair in pairs.items() if pair[0] > pair[1]} == {}


def blame_tasks_of(run: Training, free: int) -> Cause:
    return judge_tasks(run, Cause("run-tasks", "few", Remedy("")), free)


@pytest.mark.parametrize(
    ("cause", "word"),
    [
        (blame_descriptors(RUN, 161, Rlimit(160, 160), NONE), TIGHT),
        (blame_descriptors(RUN, 161, Rlimit(39, 160), NONE), TIGHT),
        (blame_descriptors(RUN, 161, Rlimit(38, 160), NONE), CANNOT),
        (blame_mappings(RUN, 500, 4), TIGHT),
        (blame_mappings(RUN, 500, 3), CANNOT),
        (blame_shared_memory(RUN, 40 * MIB, MIB, NONE), TIGHT),
        (blame_shared_memory(RUN, 40 * MIB, MIB - 1, NONE), CANNOT),
        (blame_memory(RUN, GIB, Room("/x", 1, 1, 2, most=MIB), NONE), TIGHT),
        (blame_memory(RUN, GIB, Room("/x", 1, 1, 2, most=MIB - 1), NONE), CANNOT),
        (blame_memory(RUN, GIB, Room("/x", 1, 1, 2), NONE), TIGHT),
        (blame_memory(RUN, GIB, Room("/x", 1, 1, 2, SLOWED, 1), NONE), TIGHT),
        (blame_tasks_of(RUN, 25), TIGHT),
        (blame_tasks_of(RUN, 24), CANNOT),
        (blame_memlock(Training(pinned_buffer=GIB), 65536), CANNOT),
        (blame_address_space(RUN._replace(worker_memory=GIB), GIB, "as", GIB - 1), CANNOT),
        (blame_address_space(RUN, GIB, "as", MIB), TIGHT),
        (blame_file_size(Training(checkpoint_size=GIB), MIB), TIGHT),
    ],
)
def test_a_bound_kills_for_sure_or_by_an_estimate(cause: Cause, word: str) -> None:
    assert (cause.verdict, cause.as_dict()["verdict"]) == (word, word)
    assert ("; it cannot run" in cause.text, "; it is tight" in cause.text) == (
        word == CANNOT,
        word == TIGHT,
    )
    assert "floor" not in cause.text


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({}, CANNOT),  # 10 GB of gradients, copies and parameters.
        ({"trainable_parameters": None}, TIGHT),
        ({"trainable_parameters": 10**6}, TIGHT),
        ({"nodes": 2}, TIGHT),
        ({"offload_optimizer": False, "offload_parameters": False}, TIGHT),
    ],
)
def test_of_a_model_only_what_is_stated_to_be_trained_is_sure(
    changed: dict[str, Any], word: str
) -> None:
    spread = TRAINED._replace(**changed)
    room = Room("/x", 9 * GIB, 0, 9 * GIB, most=9 * GIB)
    cause = blame_model_states(Training(deepspeed=spread), spread, find_floor(spread), room)
    assert cause.verdict == word


@pytest.mark.parametrize(
    ("assumed", "has", "word", "told"),
    [
        ((), 38, CANNOT, "it cannot run: at least 39 are needed"),
        (("tensors_per_batch",), 38, TIGHT, "estimate: where a batch holds 4 tensors, as assumed"),
        (("tensors_per_batch",), 34, CANNOT, "at least 35 are needed"),
        (("workers", "tensors_per_batch"), 34, TIGHT, "with 8 workers, where a batch holds 4"),
        (("tensors_per_batch",), 100, TIGHT, "one worker is slow; where a batch holds 4 tensors"),
        (("batch_size", "prefetch"), 100, TIGHT, "only while one worker is slow"),
    ],
)
def test_what_is_assumed_kills_no_run_for_sure(
    assumed: tuple[str, ...], has: int, word: str, told: str
) -> None:
    run = RUN._replace(assumed=assumed)
    cause = blame_descriptors(run, 161, Rlimit(has, has), NONE)
    assert cause.verdict == word
    assert told in cause.text
    assert cause.text.endswith("as assumed") == ("as assumed" in cause.text)


def fail(*causes: Cause, item: str = "nofile") -> Finding:
    return Finding(FAIL, Requirement("process:self", item, "soft"), Observation(1, ""), causes)


def test_every_cause_of_a_run_says_which_it_is() -> None:
    sure = Cause("run-descriptors", "few", Remedy(""), verdict=CANNOT)
    tight = sure._replace(verdict=TIGHT)
    line, workers = Cause("pam-line", "line", Remedy("")), Cause("run-workers", "few", Remedy(""))
    told = [
        [cause.verdict for cause in one.causes]
        for one in settle([fail(tight, line), fail(workers), fail(sure, line), fail(workers)], RUN)
    ]
    assert told == [[TIGHT, TIGHT], [TIGHT], [CANNOT, CANNOT], [CANNOT]]
    found = list(settle([fail(line), fail(workers)], RUN))
    assert [one.causes[0].verdict for one in found] == [CANNOT, TIGHT]


@pytest.mark.parametrize("code", CODES)
def test_a_fact_of_a_folder_or_a_gpu_says_which_it_is(code: str) -> None:
    """A risk says when it goes wrong; what is a fact is one."""
    (found,) = settle([fail(blame(code, "seen", "fix"))], RUN)
    (cause,) = found.causes
    words = {CANNOT: "seen; it cannot run", TIGHT: "seen; it is tight: "}
    assert cause.text.startswith(words[cause.verdict])


@pytest.mark.parametrize(
    ("code", "needed", "run", "word"),
    [
        ("checkpoint-broken", 0, Training(resume=True), CANNOT),
        ("checkpoint-broken", 0, Training(), TIGHT),
        ("folder-full", 1, Training(), CANNOT),
        ("folder-full", 2, Training(), TIGHT),
        ("folder-full", GIB, Training(), TIGHT),
        ("folder-full", None, Training(), CANNOT),
        ("gpu-little-memory", None, Training(), CANNOT),
        ("gpu-little-memory", GIB, Training(gpus=Gpus(1, GIB)), CANNOT),
        ("gpu-little-memory", GIB + 1, Training(gpus=Gpus(1, GIB)), TIGHT),
        ("gpu-little-memory", 1, Training(gpus=Gpus(1)), TIGHT),
        ("cache-file-corrupt", 0, Training(), CANNOT),
        ("output-in-use", 0, Training(), TIGHT),
    ],
)
def test_a_fact_kills_for_sure_or_not(
    code: str, needed: int | None, run: Training, word: str
) -> None:
    wanted = Requirement("path:/x", "free space", "value", needed)
    finding = Finding(FAIL, wanted, Observation(0, ""), (blame(code, "seen", "fix"),))
    assert [cause.verdict for one in settle([finding], run) for cause in one.causes] == [word]


@pytest.mark.parametrize(
    ("run", "files", "mappings"),
    [
        (Training(workers=2, hold=1, tensors_per_batch=3), 4, 4),
        (Training(workers=2, hold=0, tensors_per_batch=3), 2, 2),
        (Training(workers=0, hold=1, tensors_per_batch=3), 0, 0),
        (Training(workers=2, hold=1, tensors_per_batch=3, sharing="file_system"), 0, 4),
    ],
)
def test_each_tensor_that_is_kept_takes_a_descriptor_or_a_mapping(
    run: Training, files: int, mappings: int
) -> None:
    """Two tensors fewer in each batch are two fewer of each, for each batch that is kept."""
    less = run._replace(tensors_per_batch=1)
    assert verdict.count_least_files(run) - verdict.count_least_files(less) == files
    assert verdict.count_least_mappings(run) - verdict.count_least_mappings(less) == mappings


def test_what_passes_is_left_alone() -> None:
    finding = fail(Cause("pam-line", "line", Remedy("")))._replace(status=PASS)
    assert list(settle([finding], RUN)) == [finding]


def test_the_last_line_says_what_becomes_of_a_run() -> None:
    sure = Cause("run-memlock", "x", Remedy(""), verdict=CANNOT)
    findings = [
        fail(sure._replace(verdict=TIGHT)),
        fail(sure, item="memlock"),
        fail(sure, item="memlock"),
    ]
    told = "no-go: cannot run: memlock of process:self; tight: nofile of process:self"
    assert tell_no_go(findings) == told
    assert format_report(findings)[-1] == told
    others = [fail(Cause("pam-line", "a host's", Remedy(""))), fail(sure)._replace(status=WAIVED)]
    assert tell_no_go(others) == ""
    assert not format_report(others)[-1].startswith("no-go")


KEPT = Training(
    workers=2,
    hold=1,
    tensors_per_batch=3,
    batch_size=100,
    ranks_per_node=2,
    worker_memory=1000,
    pinned_buffer=7,
)
BARE = Training(ranks_per_node=2)


@pytest.mark.parametrize(
    ("count", "kept", "bare"),
    [
        (verdict.count_least_files, 3 + 2 * 4 + 2 * 3, 3),
        (verdict.count_least_mappings, 2 * 3, 0),
        (verdict.count_least_mapped, 1000, 0),
        (verdict.count_least_shm, 2 * 2 * 100, 0),
        (verdict.count_least_tasks, 2 * (1 + 2 * 3), 2),
        (verdict.count_least_memory, 2 * (2 * 1000 + 7) + 400, 0),
    ],
)
def test_what_a_run_takes_at_least(count: Callable[[Training], int], kept: int, bare: int) -> None:
    assert count(KEPT) == kept
    assert count(BARE) == bare
    unknown = KEPT._replace(tensors_per_batch=None, batch_size=None)
    assert count(unknown) == count(KEPT._replace(tensors_per_batch=0, batch_size=0))


@pytest.mark.parametrize(
    ("offloads", "nodes", "size"),
    [
        ((True, True), 1, 10**10),
        ((True, True), 4, 10**10 // 4),
        ((True, False), 1, 8 * 10**9),
        ((False, False), 1, 0),
    ],
)
def test_the_states_of_what_is_trained(offloads: tuple[bool, bool], nodes: int, size: int) -> None:
    spread = TRAINED._replace(
        offload_optimizer=offloads[0], offload_parameters=offloads[1], nodes=nodes
    )
    assert verdict.count_least_states(Training(deepspeed=spread)) == size
    assert verdict.count_least_memory(Training(deepspeed=spread)) == size
    assert verdict.count_least_states(Training()) == 0


@pytest.mark.parametrize(
    ("assumed", "has", "told"),
    [
        ((), 38, "it cannot run: at least 39 are needed"),
        ((), 39, "it is tight, an estimate: WHY"),
        ((), None, "it is tight, an estimate: WHY"),
        (("batch_size",), 39, "it is tight, an estimate: WHY"),
        (("workers",), 38, "it is tight, an estimate: with 8 workers, as assumed"),
        (("workers",), 39, "it is tight, an estimate: WHY; with 8 workers, as assumed"),
        (("workers", "tensors_per_batch"), 2, "it cannot run: at least 3 are needed"),
    ],
)
def test_what_there_is_decides(assumed: tuple[str, ...], has: int | None, told: str) -> None:
    run = RUN._replace(assumed=assumed)
    assert verdict.decide(run, has, verdict.count_least_files, "WHY").text == told


def test_each_value_that_is_assumed_is_told_in_words() -> None:
    keys = ("workers", "batch_size", "ranks_per_node", "loaders")
    run = RUN._replace(assumed=keys, ranks_per_node=2, loaders=3)

    def count(one: Training) -> int:
        return int(one.loaders + one.ranks_per_node + (one.batch_size or 0))

    told = verdict.decide(run, None, count, "").text
    for words in ("with 2 ranks", "with 3 loaders at a time", "where a batch takes 1.0 MiB"):
        assert words in told


@pytest.mark.parametrize(
    ("count", "least"),
    [
        (verdict.count_least_files, 3 + 4 * 2),
        (verdict.count_least_mappings, 0),
        (verdict.count_least_mapped, 0),
        (verdict.count_least_shm, 0),
        (verdict.count_least_memory, 0),
    ],
)
def test_what_nobody_stated_takes_nothing(count: Callable[[Training], int], least: int) -> None:
    assert count(Training(workers=2)) == least
