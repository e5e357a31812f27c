# SPDX-License-Identifier: GPL-3.0-or-later
"""The section of one training run: read, refused, and what a profile cannot do without."""

from __future__ import annotations

import pytest
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.schema import load_policy
from mlhost_limits.training.policy import (
    KEYS,
    DeepSpeed,
    Gpus,
    Training,
    choose_checks,
    find_missing,
    read_training,
)


def read(raw: object) -> Training | None:
    problems: list[str] = []
    read = read_training(raw, problems)
    assert not problems
    return read


def refusal(raw: object) -> list[str]:
    problems: list[str] = []
    read_training(raw, problems)
    return problems


def test_every_key_is_read_in_the_units_of_the_kernel() -> None:
    assert read(
        {
            "checks": ["cpus", "descriptors"],
            "needs": ["memory"],
            "workers": "16",
            "prefetch": 4,
            "tensors_per_batch": 8,
            "batch_size": "64MiB",
            "hold": 1,
            "base": 18,
            "sharing": "file_system",
            "start_method": "spawn",
            "ranks_per_node": 8,
            "dataset_files": 2,
            "worker_memory": "1GiB",
            "pinned_buffer": 65536,
            "cache_dir": "/var/cache/training",
            "shards": 100,
            "cache_free": "10GiB",
            "deep": True,
            "output_dir": "/srv/run-17",
            "checkpoint_size": "14GiB",
            "save_total_limit": 2,
            "deepspeed": {
                "stage": 3,
                "parameters": 7e9,
                "largest_layer": "131e6",
                "gpus_per_node": 8,
                "nodes": 2,
                "offload_optimizer": True,
                "offload_parameters": True,
                "zero_init": False,
            },
            "packages": {"torch": ">=2", "transformers": ""},
            "python": "/opt/venv/bin/python",
            "gpus": {"count": 8, "memory": "80GiB"},
            "user": "alice",
            "place": "job:slurm",
        }
    ) == Training(
        checks=("descriptors", "cpus"),
        needs=("memory",),
        workers=16,
        prefetch=4,
        tensors_per_batch=8,
        batch_size=64 * 2**20,
        hold=1,
        base=18,
        sharing="file_system",
        start_method="spawn",
        ranks_per_node=8,
        dataset_files=2,
        worker_memory=2**30,
        pinned_buffer=65536,
        cache_dir="/var/cache/training",
        shards=100,
        cache_free=10 * 2**30,
        deep=True,
        output_dir="/srv/run-17",
        checkpoint_size=14 * 2**30,
        save_total_limit=2,
        deepspeed=DeepSpeed(3, 7 * 10**9, 131 * 10**6, 8, 2, True, True, False),
        packages={"torch": ">=2", "transformers": ""},
        python="/opt/venv/bin/python",
        gpus=Gpus(8, 80 * 2**30),
        user="alice",
        place="job:slurm",
    )


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        ({"workers": 1}, "self"),
        ({"workers": 1, "user": "alice"}, "session:alice@sshd"),
        ({"user": "alice", "place": "service:train@1.service"}, "service:train@1.service"),
        ({"place": "session:alice@su"}, "session:alice@su"),
        ({"place": "container:docker/ab12"}, "container:docker/ab12"),
    ],
)
def test_who_runs_it(raw: object, place: str) -> None:
    found = read(raw)
    assert found
    assert found.place == place


@pytest.mark.parametrize(
    ("raw", "ranks"),
    [
        ({"workers": 1}, 1),
        ({"deepspeed": {"gpus_per_node": 8}}, 8),
        ({"deepspeed": {"gpus_per_node": 8}, "ranks_per_node": 4}, 4),
    ],
)
def test_deepspeed_starts_a_rank_for_each_gpu(raw: object, ranks: int) -> None:
    found = read(raw)
    assert found
    assert found.ranks_per_node == ranks


def test_nothing_stated_is_no_run() -> None:
    assert read({}) is None


WHOLE = "a whole number from {} to 1000000 is accepted"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ([], "training: a list was given; a mapping is accepted"),
        ({"wokers": 2}, "training.wokers: is unknown; accepted are " + ", ".join(KEYS)),
        ({"workers": -1}, f"training.workers: -1 was given; {WHOLE.format(0)}"),
        ({"workers": True}, f"training.workers: True was given; {WHOLE.format(0)}"),
        ({"workers": 1.5}, f"training.workers: 1.5 was given; {WHOLE.format(0)}"),
        ({"workers": "many"}, f"training.workers: 'many' was given; {WHOLE.format(0)}"),
        ({"workers": "1e99"}, f"training.workers: '1e99' was given; {WHOLE.format(0)}"),
        ({"prefetch": 0}, f"training.prefetch: 0 was given; {WHOLE.format(1)}"),
        ({"batch_size": "unlimited"}, "training.batch_size: 'unlimited' was given; a size is accepted"),
        ({"batch_size": "64MB"}, "training.batch_size: '64MB' is not a limit: accepted are a whole number (with B, KiB, MiB, GiB, TiB) or 'unlimited'"),
        ({"batch_size": 1}, "training.batch_size: 1 was given; a size with a unit, such as 1MiB or 1B, is accepted"),
        ({"batch_size": "1023"}, "training.batch_size: '1023' was given; a size with a unit, such as 1023MiB or 1023B, is accepted"),
        ({"cache_dir": "cache"}, "training.cache_dir: 'cache' was given; an absolute path is accepted"),
        ({"cache_dir": "/a\nb"}, "training.cache_dir: '/a\\nb' was given; an absolute path is accepted"),
        ({"cache_dir": 7}, "training.cache_dir: 7 was given; an absolute path is accepted"),
        ({"sharing": "fd"}, "training.sharing: 'fd' was given; accepted are file_descriptor, file_system"),
        ({"checks": []}, "training.checks: [] was given; a list of checks is accepted"),
        ({"checks": "cpus"}, "training.checks: 'cpus' was given; a list of checks is accepted"),
        ({"checks": ["cpu"]}, "training.checks: 'cpu' is unknown; accepted are descriptors, shared_memory, memory, tasks, cpus, cache, cache_integrity, output, packages, gpus, deepspeed"),
        ({"deepspeed": {"stage": 1}}, "training.deepspeed.stage: 1 was given; accepted are 2, 3"),
        ({"deepspeed": {"nodes": 0}}, f"training.deepspeed.nodes: 0 was given; {WHOLE.format(1)}"),
        ({"deepspeed": {"zero_init": "yes"}}, "training.deepspeed.zero_init: 'yes' was given; true or false"),
        ({"deepspeed": {"parameters": 7, "largest_layer": 8}}, "training.deepspeed.largest_layer: 8 is more than parameters"),
        ({"gpus": {"count": 0}}, f"training.gpus.count: 0 was given; {WHOLE.format(1)}"),
        ({"gpus": 8}, "training.gpus: 8 was given; a mapping is accepted"),
        ({"packages": ["torch"]}, "training.packages: a list was given; a mapping is accepted"),
        ({"packages": {"a b": ""}}, "training.packages: 'a b' is not a name of a package"),
        ({"packages": {"torch": 2}}, "training.packages.torch: 2 was given; a version specifier of PEP 440 is accepted, or an empty text"),
        ({"user": "../x"}, "training.user: '../x' is not a user's name"),
        ({"place": "session:x"}, "training.place: 'session:x' was given; accepted are self, session:USER@SERVICE, service:NAME.service, container:docker/NAME, new-container:docker, job:slurm"),
    ],
)  # fmt: skip
def test_what_is_refused(raw: object, problem: str) -> None:
    assert refusal(raw) == [problem]


def test_every_violation_is_told_at_once() -> None:
    assert (
        len(refusal({"workers": -1, "hold": -1, "batch_size": "x", "deepspeed": {"stage": 9}})) == 4
    )


@pytest.mark.parametrize(
    ("raw", "checks"),
    [
        ({"workers": 1}, ("memory", "tasks")),
        ({"workers": 1, "tensors_per_batch": 2}, ("descriptors", "memory", "tasks")),
        ({"workers": 1, "checks": ["cpus"]}, ("cpus",)),
        ({"output_dir": "/o", "needs": ["cpus"]}, ("cpus", "output")),
        ({"packages": {"torch": ""}}, ()),
        ({"deepspeed": {}}, ("deepspeed",)),
        ({"cache_dir": "/c", "gpus": {}}, ("cache", "cache_integrity", "gpus")),
    ],
)
def test_what_is_checked_is_what_is_known_and_what_a_profile_needs(
    raw: object, checks: tuple[str, ...]
) -> None:
    found = read(raw)
    assert found
    assert choose_checks(found) == checks


STAGE_2 = DeepSpeed(stage=2, parameters=7)


@pytest.mark.parametrize(
    ("training", "missing"),
    [
        (Training(workers=1), []),
        (Training(deepspeed=STAGE_2), []),
        (Training(deepspeed=STAGE_2._replace(stage=3)), ["deepspeed.largest_layer"]),
        (Training(deepspeed=DeepSpeed()), ["deepspeed.parameters", "deepspeed.largest_layer"]),
        (Training(needs=("shared_memory",)), ["workers", "tensors_per_batch", "batch_size"]),
        (Training(checks=("deepspeed",)), ["deepspeed", "deepspeed.parameters", "deepspeed.largest_layer"]),
        (Training(checks=("packages",), packages={"torch": ""}), ["python"]),
    ],
)  # fmt: skip
def test_all_that_is_missing_is_named(training: Training, missing: list[str]) -> None:
    assert [one.partition(":")[0] for one in find_missing(training)] == [
        f"training.{key}" for key in missing
    ]


@pytest.mark.parametrize(
    ("profile", "problems"),
    [
        ("dataloader", [
            "training.workers: is missing; it is the number of workers that each rank starts, which the checks descriptors, memory cannot do without",
            "training.tensors_per_batch: is missing; it is how many tensors one batch holds, which the check descriptors cannot do without",
        ]),
        *((name, [
            "training.output_dir: is missing; it is the directory that checkpoints go to, which the check output cannot do without",
        ]) for name in ("transformers", "trl")),
    ],
)  # fmt: skip
def test_a_profile_names_all_that_the_run_must_state(profile: str, problems: list[str]) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy(None, profile, run=True)
    assert caught.value.problems == problems
    assert load_policy(None, profile).get("training")  # The host can be prepared without a run.


def test_what_is_wrong_is_not_missing_too() -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy({"training": {"workers": -1}}, "webdataset", run=True)
    assert [one.partition(":")[0] for one in caught.value.problems] == [
        "training.workers",
        "training.cache_dir",
    ]


def test_a_run_of_which_nothing_is_known_is_refused() -> None:
    assert find_missing(Training(hold=1)) == ["training: states too little for any check of a run"]


def test_a_host_without_a_run_is_no_run_that_lacks_something() -> None:
    assert load_policy(None, "training", run=True).get("training") is None


@pytest.mark.parametrize(
    "name",
    [
        *("prefetch", "tensors_per_batch", "loaders", "epochs", "gradient_accumulation", "threads"),
        *("ranks_per_node", "world_size", "shards", "save_total_limit"),
    ],
)
def test_of_some_there_is_one_at_least(name: str) -> None:
    assert not refusal({name: 1})
    (problem,) = refusal({name: 0})
    assert name in problem


@pytest.mark.parametrize("name", ["workers", "hold", "base", "groups", "dataset_files"])
def test_of_some_there_may_be_none(name: str) -> None:
    assert not refusal({name: 0})


@pytest.mark.parametrize("name", ["gpus_per_node", "nodes", "parameters", "largest_layer"])
def test_a_spread_model_has_one_of_each_at_least(name: str) -> None:
    spread = {"stage": 2, "parameters": 1, "largest_layer": 1}
    assert not refusal({"deepspeed": {**spread, name: 1}})
    assert refusal({"deepspeed": {**spread, name: 0}})


def test_a_run_needs_one_gpu_at_least() -> None:
    assert not refusal({"gpus": {"count": 1}})
    assert refusal({"gpus": {"count": 0}})
    assert read({"gpus": {"memory": "8GiB"}}) == Training(gpus=Gpus(1, 8 * 2**30))


def test_of_an_unknown_model_nothing_is_trained() -> None:
    assert DeepSpeed(trainable_parameters=5).trained == 0


@pytest.mark.parametrize(
    ("raw", "longer"),
    [
        ({"batch_size": 1024}, {"batch_size": 1023}),
        ({"batch_size": 0}, {"batch_size": 1}),
        ({"cache_dir": "/" + "x" * 4095}, {"cache_dir": "/" + "x" * 4096}),
        ({"packages": {"torch": " " * 256}}, {"packages": {"torch": " " * 257}}),
    ],
)
def test_what_is_at_its_bound_is_read(raw: object, longer: object) -> None:
    assert not refusal(raw)
    assert len(refusal(longer)) == 1
