# SPDX-License-Identifier: GPL-3.0-or-later
"""Of two words the run's own order decides, and what no word says is assumed and said."""

from __future__ import annotations

import shlex

import pytest
from mlhost_limits.words.facts import (
    ARGUMENT,
    DEFAULT,
    ENVIRONMENT,
    FILE,
    JOB,
    LAUNCHER,
    LAUNCHER_FILE,
    ZERO,
    Fact,
    Words,
)
from mlhost_limits.words.launchers import read_command
from mlhost_limits.words.precedence import Taken, take

ORDER = (DEFAULT, JOB, ZERO, LAUNCHER_FILE, FILE, ENVIRONMENT, LAUNCHER, ARGUMENT)


def settle(*facts: Fact, **stated: object) -> Taken:
    return take(Words(facts), stated, "/here")


def run(command: str) -> Taken:
    return take(read_command(shlex.split(command)), {}, "/here")


@pytest.mark.parametrize(("weak", "strong"), list(zip(ORDER, ORDER[1:])))
def test_the_stronger_word_wins_wherever_it_stands(weak: int, strong: int) -> None:
    facts = [Fact("prefetch", 3, "a:1", weak), Fact("prefetch", 4, "b:1", strong)]
    facts.append(Fact("workers", 1, "c:1", ARGUMENT))
    for order in (facts, facts[::-1]):
        assert settle(*order).section["prefetch"] == 4


def test_both_of_two_words_are_named() -> None:
    facts = (Fact("workers", 1, "run.yaml:2", FILE), Fact("workers", 2, "--workers", ARGUMENT))
    assert settle(*facts).notes == (
        "workers 2 (--workers) counts, not 1 (run.yaml:2): an argument wins over a file",
    )
    assert settle(*facts, workers=3).notes == ()


def test_what_is_refused_is_told_only_where_it_counts() -> None:
    bad = Fact("workers", None, "a:1", FILE, "a:1: it is bad")
    assert settle(bad).problems == ("a:1: it is bad; mend it, or state --workers N",)
    assert settle(bad, Fact("workers", 1, "--workers", ARGUMENT)).problems == ()
    assert settle(bad, workers=1).problems == ()
    samples = bad._replace(key="samples")
    (problem,) = settle(samples).problems
    assert problem.endswith("mend it, or state --batch-size SIZE (the bytes of one batch)")
    assert settle(samples, batch_size=1).problems == ()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("python t.py", "workers 8 (assumed: no word says how many)"),
        ("python t.py --per_device_train_batch_size 2", "workers 0 (assumed: transformers' default)"),
        ("python t.py --num-workers 2", "prefetch 2 (assumed: torch's default)"),
        ("swift sft", "workers 1 (SWIFT's default)"),
        ("CUDA_VISIBLE_DEVICES=0,1 axolotl train", "workers 2 (Axolotl's default)"),
        ("axolotl train", "prefetch 256 (Axolotl's default)"),
        ("axolotl train --dataloader_num_workers 3", "prefetch 2 (assumed: torch's default)"),
        ("python t.py --batch-size 64", "batch_size 64MiB (assumed: 64 samples of 1 MiB)"),
        ("python t.py --batch-size 1 --seq-length 65536", "batch_size 2MiB (assumed: 1 sample of 65536 tokens)"),
        ("python t.py --batch-size 8 --img-size 3,512", "batch_size 24MiB (assumed: 8 samples of 512 x 512 pixels)"),
        ("deepspeed t.py", "ranks_per_node 8 (assumed: deepspeed takes every GPU)"),
        ("./train --num-workers 2", "ranks_per_node 1 (assumed: no launcher is named)"),
    ],
)  # fmt: skip
def test_what_is_assumed_is_said(command: str, told: str) -> None:
    assert told in run(command).told


def test_without_workers_nothing_is_asked_of_batches() -> None:
    taken = run("python t.py --num-workers 0")
    assert (taken.asked, "prefetch" in taken.section) == ((), False)


def test_a_path_begins_where_the_run_does() -> None:
    assert run("python t.py --output_dir ./a/../b").section["output_dir"] == "/here/b"


def test_the_parameters_of_a_model_are_asked_for() -> None:
    zero = Fact("deepspeed.stage", 3, "d:1", ZERO)
    (problem,) = settle(zero).problems
    assert problem.startswith("deepspeed.parameters: the number of the model's parameters is not")
    taken = settle(zero, **{"deepspeed.parameters": "2e9"})
    assert taken.section["deepspeed"] == {
        "stage": 3,
        "gpus_per_node": 1,
        "largest_layer": 5 * 10**8,
    }
