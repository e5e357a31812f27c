# SPDX-License-Identifier: GPL-3.0-or-later
"""A run is read whatever wraps it, and what only seems to start one is said not to be read."""

from __future__ import annotations

import shlex

import pytest
from mlhost_limits.words.facts import Words
from mlhost_limits.words.launchers import read_command, read_script
from mlhost_limits.words.precedence import take
from mlhost_limits.words.wrappers import peel

WRAPPED = [
    "python train.py --num_workers 4",
    "python3 train.py --num_workers 4",
    "python3.11 train.py --num_workers 4",
    "/opt/venv/bin/python -u train.py --num_workers 4",
    "./train.py --num_workers 4",
    "train.py --num_workers 4",
    "/srv/job/train.py --num_workers 4",
    "uv run train.py --num_workers 4",
    "uv run --with torch train.py --num_workers 4",
    "uv run --frozen python -m package.train --num_workers 4",
    "uv run -m package.train --num_workers 4",
    "uv run torchrun --nproc-per-node 2 train.py --num_workers 4",
    "uvx --from trl trl sft --dataloader_num_workers 4",
    "poetry run python train.py --num_workers 4",
    "poetry run train.py --num_workers 4",
    "pixi run python train.py --num_workers 4",
    "pixi run -e cuda train.py --num_workers 4",
    "pdm run train.py --num_workers 4",
    "hatch run train.py --num_workers 4",
    "rye run python train.py --num_workers 4",
    "pipenv run python train.py --num_workers 4",
    "conda run -n env python train.py --num_workers 4",
    "conda run --no-capture-output -n env train.py --num_workers 4",
    "mamba run -n env python train.py --num_workers 4",
    "micromamba run -n env python train.py --num_workers 4",
    "nohup python train.py --num_workers 4 &",
    "nohup ./train.py --num_workers 4",
    "env A=B python train.py --num_workers 4",
    "env -u A CUDA_VISIBLE_DEVICES=0 ./train.py --num_workers 4",
    "time python train.py --num_workers 4",
    "/usr/bin/time -v ./train.py --num_workers 4",
    "numactl --cpunodebind=0 --membind 0 ./train.py --num_workers 4",
    "taskset -c 0-7 python train.py --num_workers 4",
    "taskset -c 0-7 ./train.py --num_workers 4",
    "taskset 0xff ./train.py --num_workers 4",
    "nice -n 10 ./train.py --num_workers 4",
    "ionice -c 2 -n 0 ./train.py --num_workers 4",
    "chrt -f 10 ./train.py --num_workers 4",
    "timeout 3600 ./train.py --num_workers 4",
    "timeout -s INT 3600 python train.py --num_workers 4",
    "stdbuf -oL ./train.py --num_workers 4",
    "setsid ./train.py --num_workers 4",
    "exec ./train.py --num_workers 4",
    "sudo -u alice -E ./train.py --num_workers 4",
    "nsys profile -o out --trace=cuda python train.py --num_workers 4",
    "nsys profile --output out ./train.py --num_workers 4",
    "ncu --set full python train.py --num_workers 4",
    "py-spy record -o out.svg -- python train.py --num_workers 4",
    "strace -f -o out ./train.py --num_workers 4",
    "perf stat -e cycles ./train.py --num_workers 4",
    "xvfb-run -a ./train.py --num_workers 4",
    "systemd-run --user --scope -p MemoryMax=8G ./train.py --num_workers 4",
    "flock /tmp/lock ./train.py --num_workers 4",
    "srun --ntasks 2 ./train.py --num_workers 4",
    'srun --mpi=pmix bash -c "python train.py --num_workers 4"',
    "nohup srun -n 4 python train.py --num_workers 4",
    "mpirun -np 4 ./train.py --num_workers 4",
    'bash -c "cd x && python train.py --num_workers 4"',
    'bash -lc "python train.py --num_workers 4"',
    "sh -exc 'python train.py --num_workers 4'",
    'eval "python train.py --num_workers 4"',
    "bash run2.sh",
    ". ./run2.sh",
    "source run2.sh",
    "./run2.sh --num_workers 4",
    "python -m torch.distributed.run --nproc-per-node 2 train.py --num_workers 4",
    "torchrun --nproc-per-node 2 -m package.train --num_workers 4",
    "accelerate launch train.py --num_workers 4",
    "deepspeed train.py --num_workers 4",
    "python -m trl sft --dataloader_num_workers 4",
    "singularity exec --nv x.sif python train.py --num_workers 4",
    "apptainer exec --nv x.sif python3 train.py --num_workers 4",
    "coverage run train.py --num_workers 4",
    "python -m debugpy --listen 5678 train.py --num_workers 4",
    "python -m cProfile -o prof train.py --num_workers 4",
    "OMP_NUM_THREADS=1 nohup nice -n 5 taskset -c 0 uv run train.py --num_workers 4",
    "if python train.py --num_workers 4; then echo ok; fi",
    "cd /srv && python train.py --num_workers 4",
]


def read(*lines: str) -> Words:
    return read_script("\n".join(lines), "run.sh", {})


@pytest.mark.parametrize("line", WRAPPED)
def test_a_wrapped_run_is_read(line: str) -> None:
    """In a script, and as the command itself."""
    for found in (read(line), read_command(shlex.split(line.partition(";")[0].rstrip(" &")))):
        facts = {fact.key: fact.value for fact in found.facts}
        names_a_script = [one.path for one in found.wanted] in (["run2.sh"], ["./run2.sh"])
        assert facts.get("workers") == 4 or names_a_script, found
        assert not found.problems
        assert not found.notes


@pytest.mark.parametrize(
    "line",
    [
        "make train",
        "just train-all",
        "./launch.bin --num_workers 4",
        "mylauncher train.py --num_workers 4",
        "fancy --dataloader_num_workers 4",
        "ssh node2 'python train.py --num_workers 4'",
        "pixi run train",
        "poetry run finetune --num_workers 4",
        "./train --num_workers 4",
        "./tool.bin --launcher torchrun --num_workers 4",
        "conda run -n env my-train",
    ],
)
def test_what_seems_to_start_a_run_is_said_not_to_be_read(line: str) -> None:
    found = read("true", line)
    (note,) = found.notes
    head = " ".join(list(peel(shlex.split(line)).words)[:2])
    assert note == f"run.sh:2: not read: {head}: no launcher of that name is known"
    assert not found.facts


@pytest.mark.parametrize(
    "line",
    [
        *("pip install deepspeed accelerate", "echo python train.py", "which torchrun"),
        *("cp train.py out", "uv pip install torch", "rm -f train.log", "black train.py"),
        *("conda install python", "git clone x/train.py", "mkdir -p out", "npm run build"),
        *("nohup", "uv run", "env A=B", "taskset -c 0", "eval", "."),
    ],
)
def test_what_starts_nothing_is_passed_over(line: str) -> None:
    assert not any(read(line))


def test_a_note_shows_no_option() -> None:
    """It may be a token."""
    assert "secret" not in read("./train --num_workers 4 --hub_token secret").notes[0]


def test_an_unknown_command_is_read_like_a_script() -> None:
    found = read_command(["fancy", "--num_workers", "4"])
    assert [fact.value for fact in found.facts] == [4]
    assert found.notes == (
        "command line: not read: fancy --num_workers: no launcher of that name is known;"
        " its options are taken for those of a script",
    )


def test_an_argument_is_no_launcher() -> None:
    found = read("uv run train.py --launcher torchrun --num_workers 4")
    assert {fact.key: fact.value for fact in found.facts}["workers"] == 4


@pytest.mark.parametrize("apart", ["\n", " && ", "; "])
def test_of_several_starts_each_is_named_and_the_largest_counts(apart: str) -> None:
    lines = apart.join(
        [
            "python prepare.py --num_workers 8",
            "torchrun --nproc-per-node 2 train.py --num_workers 2",
        ]
    )
    found = read(lines)
    at = 2 if "\n" in apart else 1
    assert found.notes == (
        f"run.sh starts 2 runs, python (run.sh:1), torchrun (run.sh:{at}): as one after the other,"
        " the largest of each value counts",
    )
    assert take(found, {}, "/").section["workers"] == 8


def test_of_several_starts_of_a_shell_the_largest_counts() -> None:
    words = ["bash", "-c", "python a.py --num_workers 8 && python b.py --num_workers 2"]
    found = read_command(words)
    assert found.notes == (
        "bash -c starts 2 runs, python, python: as one after the other, the largest of"
        " each value counts",
    )
    assert take(found, {}, "/").section["workers"] == 8


def test_a_module_that_is_a_trainer_says_whose_loop_it_is() -> None:
    assert read("python -m trl sft --output_dir x").library == "trl"
    assert read("trl dpo --output_dir x").library == "trl"
    assert read("accelerate launch trl/scripts/sft.py --output_dir x").library == "trl"
    assert read("python mytrl/scripts/sft.py --output_dir x").library == ""
    assert read("python -m trlx.sft --output_dir x").library == ""


@pytest.mark.parametrize(
    "front",
    [
        *("taskset 0xff", "taskset -c 0-7", "timeout -s INT 3600", "nice -n 5", "chrt -f 10"),
        *("env -u A B=C", "A=B nohup", "conda run -n env", "uv run --with torch", "exec -a x"),
        *("sudo -u alice -E", "numactl -C 0 -m 0", "nsys profile -o out", "flock -w 5 /tmp/lock"),
        *("perf stat -e cycles --", "systemd-run --scope -p MemoryMax=8G", "ionice -c 2 -n 0"),
    ],
)
def test_what_wraps_a_command_is_taken_off_whole(front: str) -> None:
    assert list(peel([*front.split(), "./tool", "--a", "1"]).words) == ["./tool", "--a", "1"]
