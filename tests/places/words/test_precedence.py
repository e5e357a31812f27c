# SPDX-License-Identifier: GPL-3.0-or-later
"""Of two words the run's own order decides, and what no word says is assumed and said."""

from __future__ import annotations

import shlex

import pytest
from mlhost_limits.training.keys import KEYS
from mlhost_limits.words.facts import (
    ARGUMENT,
    DEFAULT,
    ENVIRONMENT,
    FILE,
    JOB,
    LAUNCHER,
    LAUNCHER_FILE,
    MEASURED,
    NAMED,
    ZERO,
    Fact,
    Words,
)
from mlhost_limits.words.launchers import read_command
from mlhost_limits.words.precedence import Taken, take

ORDER = (DEFAULT, JOB, ZERO, LAUNCHER_FILE, FILE, ENVIRONMENT, LAUNCHER, ARGUMENT, MEASURED)


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
        ("python t.py", "batch_size 64MiB (assumed: no word says how many samples)"),
        ("python t.py", "tensors_per_batch 8 (assumed: most batches hold fewer)"),
        ("python t.py --batch-size 1000 --seq-length 1000", "batch_size 23MiB (assumed: 1000 samples of 1000 tokens)"),
        ("python t.py --resume", "resume yes (--resume)"),
        ("python t.py --cache_dir c", "cache_dir /here/c (--cache_dir)"),
        ("python t.py --per_device_train_batch_size 2", "workers 0 (assumed: transformers' default)"),
        ("python t.py --num-workers 2", "prefetch 2 (assumed: torch's default)"),
        ("swift sft", "workers 1 (SWIFT's default)"),
        ("axolotl train", "workers 8 (Axolotl's default)"),
        ("axolotl train --num-processes 3", "workers 3 (Axolotl's default)"),
        ("CUDA_VISIBLE_DEVICES=0,1 axolotl train --num-processes 3", "workers 2 (Axolotl's default)"),
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


@pytest.mark.parametrize(
    ("command", "world"),
    [
        ("torchrun --nnodes 4 --nproc-per-node 8 train.py", 32),
        ("torchrun --nproc-per-node 8 train.py", None),
        ("torchrun --nnodes 1 --nproc-per-node 8 train.py", None),
        ("python train.py --num_nodes 2", 2),
    ],
)
def test_the_processes_of_all_nodes_are_told(command: str, world: int | None) -> None:
    assert run(command).section.get("world_size") == world


def test_without_workers_nothing_is_asked_of_batches() -> None:
    taken = run("python t.py --num-workers 0")
    assert (taken.asked, "prefetch" in taken.section) == ((), False)
    assert "prefetch" not in run("python t.py --num-workers 0 --prefetch-factor 4").section


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


def seen(key: str, value: object) -> Fact:
    return Fact(key, value, "measured: 5 batches of t.py", MEASURED)


def test_what_was_measured_wins_over_words_and_both_are_told() -> None:
    taken = settle(Fact("workers", 8, "--workers", ARGUMENT), seen("workers", 2))
    assert taken.section["workers"] == 2
    assert taken.notes == (
        "workers 2 (measured: 5 batches of t.py) counts, not 8 (--workers): what was measured wins"
        " over an argument",
    )


def test_what_was_measured_is_neither_assumed_nor_asked_for() -> None:
    facts = [("workers", 2), ("prefetch", 3), ("tensors_per_batch", 5), ("batch_size", "52B")]
    taken = settle(*(seen(*one) for one in (*facts, ("ranks_per_node", 2))))
    assert dict(taken.section) == {**dict(facts), "ranks_per_node": 2}
    assert taken.asked == ()


@pytest.mark.parametrize(
    ("key", "stated", "measured", "notes"),
    [
        ("workers", "4", 2, ("workers 4 counts, as stated, not 2 (measured: 5 batches of t.py)",)),
        ("workers", "2", 2, ()),
        ("workers", "1e1", 10, ()),
        ("batch_size", "2MiB", 2**21, ()),
        ("batch_size", "52B", "52B", ()),
        ("sharing", "file_system", "file_system", ()),
        ("workers", "many", 2, ("workers many counts, as stated, not 2 (measured: 5 batches of t"
                                ".py)",)),
    ],
)  # fmt: skip
def test_an_option_counts_and_what_was_measured_is_told(
    key: str, stated: str, measured: object, notes: tuple[str, ...]
) -> None:
    taken = settle(seen(key, measured), **{key: stated})
    assert key not in taken.section
    assert taken.notes == notes


def test_a_loader_that_words_name_counts_though_it_was_not_seen() -> None:
    said = Fact("loaders", 2, "--eval_steps", ARGUMENT)
    taken = settle(said, seen("loaders", 1))
    assert taken.section["loaders"] == 2
    assert taken.notes == (
        "loaders 2 (--eval_steps) counts, not 1 (measured: 5 batches of t.py): there may be more"
        " than were seen",
    )
    assert settle(said, seen("loaders", 3)).section["loaders"] == 3


@pytest.mark.parametrize(
    ("library", "steps", "kept", "hold"),
    [("", 1, 3, 3), ("accelerate", 1, 3, 2), ("transformers", 2, 3, 0), ("transformers", 4, 3, 0)],
)
def test_what_a_library_keeps_is_not_held_twice(
    library: str, steps: int, kept: int, hold: int
) -> None:
    facts = (seen("hold", kept), Fact("gradient_accumulation", steps, "a:1", FILE))
    assert take(Words(facts, library=library), {}, "/here").section["hold"] == hold


@pytest.mark.parametrize(
    ("facts", "notes"),
    [
        ([("workers", 2, "a:1", FILE), ("workers", 1, "a:2", FILE)],
         ["workers 2 (a:1) counts, not 1 (a:2): the largest"]),
        ([("workers", 2, "--a", ARGUMENT), ("workers", 1, "--b", ARGUMENT)],
         ["workers 1 (--b) counts, not 2 (--a): the last one wins"]),
        ([("sharing", "x", "a:1", FILE), ("sharing", "y", "a:2", FILE)],
         ["sharing y (a:2) counts, not x (a:1): the last one wins"]),
        ([("loaders", 2, "a:1", FILE), ("loaders", 1, "--b", ARGUMENT)],
         ["loaders 1 (--b) counts, not 2 (a:1): an argument wins over a file"]),
        ([("ranks_per_node", 1, "--n", JOB), ("ranks_per_node", 8, "--m", LAUNCHER)], []),
        ([("ranks_per_node", 1, "$A", ENVIRONMENT), ("ranks_per_node", 8, "--m", LAUNCHER)],
         ["ranks_per_node 8 (--m) counts, not 1 ($A): a launcher's option wins over the"
          " environment"]),
        ([("workers", 1, "--n", JOB), ("workers", 8, "--m", LAUNCHER)],
         ["workers 8 (--m) counts, not 1 (--n): a launcher's option wins over the job"]),
    ],
)  # fmt: skip
def test_why_one_of_two_counts(facts: list[tuple[str, object, str, int]], notes: list[str]) -> None:
    taken = settle(*(Fact(*one) for one in facts))
    assert list(taken.notes) == notes
    assert taken.problems == ()


def test_a_stage_without_parameters_of_its_own_asks_for_no_layer() -> None:
    stated = {"deepspeed.parameters": "2e9"}
    assert settle(Fact("deepspeed.stage", 2, "d:1", ZERO), **stated).section["deepspeed"] == {
        "stage": 2,
        "gpus_per_node": 1,
    }
    taken = settle(Fact("deepspeed.stage", 3, "d:1", ZERO), ranks_per_node=2, **stated)
    assert taken.section["deepspeed"] == {"stage": 3, "largest_layer": 5 * 10**8}
    small = settle(Fact("deepspeed.stage", 3, "d:1", ZERO), **{"deepspeed.parameters": "2"})
    assert small.section["deepspeed"] == {"stage": 3, "gpus_per_node": 1, "largest_layer": 1}


def test_what_is_known_only_in_the_job_does_not_hide_another_path() -> None:
    taken = settle(
        Fact("output_dir", "auto", "--o", ARGUMENT), Fact("cache_dir", "c", "--c", ARGUMENT)
    )
    assert taken.section["cache_dir"] == "/here/c"


def test_what_is_told_are_keys_of_a_policy_in_their_order() -> None:
    taken = run("CUDA_VISIBLE_DEVICES=0 python t.py --output_dir o --num-workers 2 --batch-size 2")
    names = [one.partition(" ")[0] for one in taken.told]
    assert set(names) <= set(KEYS)
    assert names == sorted(names, key=list(KEYS).index)
    assert "workers" in names
    assert "gpus" not in names


def test_what_no_word_states_is_assumed_and_what_is_stated_has_no_origin() -> None:
    taken = take(read_command(["python", "t.py"]), {"workers": 2}, "/here")
    assert "batch_size" in taken.assumed
    assert "workers" not in taken.origins


def test_without_accumulation_a_library_keeps_what_one_step_keeps() -> None:
    kept = take(Words((seen("hold", 5),), library="transformers"), {}, "/here").section["hold"]
    steps = Fact("gradient_accumulation", 1, "a:1", FILE)
    taken = take(Words((seen("hold", 5), steps), library="transformers"), {}, "/here")
    assert kept == taken.section["hold"]


@pytest.mark.parametrize(("nodes", "told"), [(0, None), (1, 1), (2, 2), ("auto", None)])
def test_deepspeed_is_told_of_nodes_that_are_known(nodes: object, told: int | None) -> None:
    taken = settle(
        Fact("deepspeed.stage", 2, "d:1", ZERO),
        Fact("nodes", nodes, "--nnodes", LAUNCHER),
        **{"deepspeed.parameters": "2e9"},
    )
    deepspeed = taken.section["deepspeed"]
    assert isinstance(deepspeed, dict)
    assert deepspeed.get("nodes") == told


@pytest.mark.parametrize(
    ("nodes", "ranks", "world"),
    [(3, 2, 6), (2, 2, 4), (2, 1, 2), (2, 0, None), (1, 2, None), (0, 2, None), ("auto", 2, None)],
)
def test_the_processes_of_all_nodes_are_a_product(
    nodes: object, ranks: int, world: int | None
) -> None:
    taken = settle(
        Fact("nodes", nodes, "--nnodes", LAUNCHER), Fact("ranks_per_node", ranks, "--n", LAUNCHER)
    )
    assert taken.section.get("world_size") == world


@pytest.mark.parametrize(
    ("world", "nodes", "ranks"),
    [(0, 1, 1), (1, 2, 1), (3, 2, 2), (4, 2, 2), (5, 2, 3), (4, 0, 4), ("auto", 2, 8)],
)
def test_the_processes_of_all_nodes_are_divided(world: object, nodes: int, ranks: int) -> None:
    taken = settle(Fact("world", world, "--w", LAUNCHER), Fact("nodes", nodes, "--n", LAUNCHER))
    assert taken.section["ranks_per_node"] == ranks


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ({"samples": 0}, 64),
        ({"samples": 1}, 1),
        ({"samples": 2}, 2),
        ({"samples": 2, "length": 0}, 2),
        ({"samples": 2**20, "length": 1}, 24),
        ({"samples": 2**20, "length": 1, "pixels": 2}, 24),
        ({"samples": 2**20, "pixels": 1}, 12),
        ({"samples": 2**20, "length": 0, "pixels": 1}, 12),
        ({"samples": 2, "pixels": 0}, 2),
    ],
)
def test_the_size_of_a_batch_is_worked_out(words: dict[str, int], size: int) -> None:
    taken = settle(*(Fact(key, value, f"--{key}", ARGUMENT) for key, value in words.items()))
    assert taken.section["batch_size"] == size * 2**20


def test_workers_by_the_gpus_are_one_at_least() -> None:
    auto = Fact("workers", "auto", "--w", ARGUMENT)
    for gpus, workers in ((0, 1), (1, 1), (2, 2)):
        taken = settle(auto, Fact("gpus.count", gpus, "--g", ARGUMENT))
        assert taken.section["workers"] == workers


@pytest.mark.parametrize(("steps", "hold"), [(0, 4), (1, 4), (2, 2), (3, 0)])
def test_what_accumulation_keeps_is_not_held_twice(steps: int, hold: int) -> None:
    words = Words((seen("hold", 5),), library="transformers")
    assert take(words, {"gradient_accumulation": steps}, "/here").section["hold"] == hold


def test_what_files_say_alike_is_refused_by_nobody() -> None:
    twice = [Fact("workers", 2, where, FILE) for where in ("a:1", "b:1")]
    assert settle(*twice).problems == ()
    for more in (2, 3, 4):
        files = [Fact("workers", number, f"{number}:1", FILE) for number in range(more)]
        (problem,) = settle(*files).problems
        told = " and ".join(f"{number}:1 says {number}" for number in range(min(more, 3)))
        assert problem.startswith(f"workers: {told}, and nothing says which file counts;")


def test_parameters_that_are_no_number_are_refused_elsewhere() -> None:
    zero = Fact("deepspeed.stage", 3, "d:1", ZERO)
    assert settle(zero, **{"deepspeed.parameters": "many"}).problems == ()
    taken = settle(zero, Fact("deepspeed.parameters", 5, "x:1", NAMED))
    deepspeed = taken.section["deepspeed"]
    assert isinstance(deepspeed, dict)
    assert deepspeed["largest_layer"] == 1


def test_each_path_that_only_the_job_knows_is_asked_for() -> None:
    auto = [Fact(key, "auto", "--p", ARGUMENT) for key in ("cache_dir", "output_dir")]
    taken = settle(*auto)
    assert taken.asked[:2] == ("--output-dir DIR", "--cache-dir DIR")
    taken = settle(Fact("cache_dir", "c", "--p", ARGUMENT))
    assert taken.section["cache_dir"] == "/here/c"


@pytest.mark.parametrize(
    ("values", "workers"), [((8, "auto"), 1), (("auto", 8), 8), ((8, 9, "auto"), 9)]
)
def test_of_numbers_the_largest_counts_and_else_the_last(
    values: tuple[object, ...], workers: int
) -> None:
    facts = [Fact("workers", value, f"a:{at}", FILE) for at, value in enumerate(values)]
    assert settle(*facts).section["workers"] == workers


@pytest.mark.parametrize(
    ("resume", "goes_on", "noted"),
    [
        ("true", True, False),
        ("no", False, False),
        ("/out/checkpoint-5", True, False),
        ("/out", None, True),
        ("/elsewhere/model.pth", None, True),
        ("/output/checkpoint-5", None, True),
        ("latest", None, False),
        ("last", None, False),
    ],
)
def test_a_checkpoint_elsewhere_is_none_of_output_dir(
    resume: str, goes_on: bool | None, noted: bool
) -> None:
    words = ["python", "t.py", "--output_dir", "/out", "--resume", resume]
    taken = take(read_command(words), {}, "/here")
    assert taken.section.get("resume") == goes_on
    told = f"not looked at: {resume}, resumed from (--resume)"
    assert (told in taken.notes) == noted
