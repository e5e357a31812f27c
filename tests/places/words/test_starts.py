# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a launcher's word stands is told, and what starts nothing is not taken for a run."""

from __future__ import annotations

import shlex

import pytest
from mlhost_limits.words.facts import LAUNCHER, Words
from mlhost_limits.words.launchers import read_command
from mlhost_limits.words.precedence import take
from mlhost_limits.words.wrappers import peel, starts_nothing


def read(command: str, where: str = "") -> Words:
    return read_command(shlex.split(command), where)


def say(found: Words) -> dict[str, object]:
    return {fact.key: fact.value for fact in found.facts}


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("torchrun --nproc-per-node x t.py", "--nproc-per-node"),
        ("srun --ntasks-per-node x python t.py", "--ntasks-per-node"),
        ("OMP_NUM_THREADS=x python t.py", "OMP_NUM_THREADS"),
        ("python t.py --num_workers x", "--num_workers"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_or_its_option(command: str, option: str) -> None:
    (told,) = [fact.problem for fact in read(command, "run.sh:7").facts if fact.problem]
    assert told == f"run.sh:7: {option}: 'x' is not a whole number"
    (told,) = [fact.problem for fact in read(command).facts if fact.problem]
    assert told.lstrip("$") == f"{option}: 'x' is not a whole number"


@pytest.mark.parametrize(
    ("command", "key", "option"),
    [
        ("deepspeed --include localhost:0,1 t.py", "ranks_per_node", "--include"),
        ("srun -N 2 python t.py", "nodes", "-N"),
        ("OMP_NUM_THREADS=2 python t.py", "threads", "$OMP_NUM_THREADS"),
        ("python t.py --resume", "resume", "--resume"),
    ],
)
def test_an_origin_is_the_line_or_the_option(command: str, key: str, option: str) -> None:
    for where, told in (("", option), ("run.sh:7", "run.sh:7")):
        assert [one.where for one in read(command, where).facts if one.key == key] == [told]


def test_a_file_is_wanted_by_the_line_or_the_command_line() -> None:
    for command in ("bash run.sh", "python t.py a.json"):
        assert [one.where for one in read(command).wanted] == ["command line"]
        assert [one.where for one in read(command, "run.sh:7").wanted] == ["run.sh:7"]
    assert [one.path for one in read("python t.py a b.json c.json").wanted] == ["b.json", "c.json"]


@pytest.mark.parametrize(
    ("command", "threads"),
    [
        ("torchrun --nproc-per-node 2 t.py", 1),
        ("torchrun --nproc-per-node 1 t.py", None),
        ("torchrun --nnodes 2 t.py", None),
        ("torchrun t.py", None),
    ],
)
def test_torchrun_gives_each_of_several_ranks_one_thread(command: str, threads: int | None) -> None:
    assert say(read(command)).get("threads") == threads


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("python -m torch.distributed.run t.py", "ranks_per_node 1 (torchrun's default)"),
        ("torchrun --nnodes 2 t.py", "ranks_per_node 1 (torchrun's default)"),
        ("yolo train", "ranks_per_node 1 (no device is named)"),
        ("swift sft", "ranks_per_node 1 (no NPROC_PER_NODE)"),
        ("bash -c 'yolo train workers=4'", "workers 4 (bash -c)"),
        ("python -m trl --num_workers 4", "workers 4 (--num_workers)"),
        ("axolotl --num_workers 4", "workers 4 (--num_workers)"),
        ("bash run.sh --num_workers 4", "workers 4 (--num_workers)"),
        ("bash -x run.sh --num_workers 4", "workers 4 (--num_workers)"),
        ("sbatch --mem=1G run.sh --num_workers 4", "workers 4 (--num_workers)"),
        ("sbatch --wrap 'python a.py --num_workers 4'", "workers 4 (sbatch --wrap)"),
        ("accelerate launch python t.py --num_workers 4", "workers 4 (--num_workers)"),
        ("python t.py --output_dir output", "output_dir /here/output (--output_dir)"),
        ("python t.py --output_dir a=b", "output_dir /here/a=b (--output_dir)"),
    ],
)
def test_what_a_command_says_is_told_with_its_origin(command: str, told: str) -> None:
    assert told in take(read(command), {}, "/here").told


def test_an_option_of_a_launcher_that_is_not_known_has_no_script_as_its_value() -> None:
    found = read("torchrun --unknown t.py --num_workers 4")
    assert (found.problems, say(found)["workers"]) == ((), 4)


def test_a_trainers_own_ranks_count_as_a_launchers() -> None:
    (fact,) = [one for one in read("axolotl --num-processes 3").facts if one.key == "world"]
    assert fact.rank == LAUNCHER


def test_whose_loop_it_is_is_told_by_the_module() -> None:
    assert read("python -m accelerate.commands.launch t.py").library == "accelerate"
    assert read("python t.py trl --x 1").library == ""


@pytest.mark.parametrize(
    "command",
    [
        *("bash -c", "bash -x", "sbatch --hold", "accelerate config", "/opt/bin/accelerate test"),
        *("docker exec box run", "docker build .", "docker ps"),
    ],
)
def test_what_starts_no_run_says_nothing(command: str) -> None:
    found = read(command, "run.sh:7")
    assert (found.facts, found.stated, found.problems) == ((), (), ())


def test_a_module_without_a_name_is_no_traceback() -> None:
    assert read("python -m").problems == ()


def test_only_an_engine_runs_containers() -> None:
    assert read("fancy run --num_workers 4 x").stated == ()


def test_a_script_that_is_started_is_no_start_of_its_own() -> None:
    for second in ("bash b.sh --num_workers 2", "cd x", "A=B"):
        assert read(f"bash -c 'python a.py --num_workers 8; {second}'").notes == ()


@pytest.mark.parametrize(("deep", "workers"), [(7, 4), (8, None)])
def test_a_command_within_commands_is_read_to_a_depth(deep: int, workers: int | None) -> None:
    found = read(f"{'eval ' * deep}python t.py --num_workers 4", "run.sh:1")
    assert say(found).get("workers") == workers


def test_a_word_that_is_no_path_is_the_same_in_a_container() -> None:
    found = read("docker run image python t.py --sharing_strategy file_system")
    assert (say(found)["sharing"], found.notes) == ("file_system", ())


@pytest.mark.parametrize(
    ("words", "wrapped"),
    [("A=B ./x", False), ("nohup ./x", True), ("nohup A=B ./x", True), ("./x", False)],
)
def test_a_variable_is_no_wrapper(words: str, wrapped: bool) -> None:
    assert peel(words.split()).wrapped is wrapped


def test_who_installs_starts_nothing() -> None:
    assert [starts_nothing(one.split()) for one in ("uv pip x", "uv", "conda install run")] == [
        True,
        True,
        True,
    ]
    assert not starts_nothing(["uv", "run", "x"])
    assert list(peel(["hatch", "run", "./tool"]).words) == ["./tool"]
