# SPDX-License-Identifier: GPL-3.0-or-later
"""A command says how many processes start, and what its script is given."""

from __future__ import annotations

import shlex

import pytest
from mlhost_limits.words.facts import Words
from mlhost_limits.words.launchers import read_command
from mlhost_limits.words.precedence import take


def read(command: str) -> Words:
    return read_command(shlex.split(command))


def section(command: str) -> dict[str, object]:
    return dict(take(read(command), {}, "/here").section)


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("python train.py", 1),
        ("python -u -m package.train --num-workers 2", 1),
        ("/usr/bin/python3.11 -W ignore train.py", 1),
        ("torchrun --nproc-per-node 8 train.py", 8),
        ("torchrun --nproc_per_node=8 --standalone train.py", 8),
        ("torchrun train.py", 1),
        ("deepspeed --hostfile host:1,2 train.py", 8),
        ("torchrun --nproc-per-node gpu train.py", 8),
        ("CUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc-per-node gpu train.py", 3),
        ("python -m torch.distributed.launch --nproc_per_node=2 --use-env train.py", 2),
        ("python -m torch.distributed.run --nnodes 2 --nproc-per-node 4 train.py", 4),
        ("accelerate launch --num_processes 8 --num_machines 2 train.py", 4),
        ("accelerate launch --num-processes=3 --multi-gpu train.py", 3),
        ("accelerate launch -m --num_processes 2 package.train", 2),
        ("torchrun -m --nproc-per-node 2 package.train", 2),
        ("torchrun --nproc-per-node 2 -m package.train", 2),
        ("deepspeed --module --num_gpus 4 package.train", 4),
        ("accelerate launch train.py", 8),
        ("accelerate launch --multi_gpu train.py", 8),
        ("accelerate launch --cpu train.py", 1),
        ("accelerate launch train.py --cpu", 8),
        ("python train.py --ngpus_per_node 4", 4),
        ("python train.py --device cuda", 1),
        ("python train.py --device 7", 1),
        ("python train.py --device 0,1,2", 3),
        ("torchrun --nproc-per-node 4 train.py --device cuda", 4),
        ("torchrun --nproc-per-node 4 train.py --num_gpus 1", 4),
        ("accelerate launch --num_processes 2 train.py --device cuda", 2),
        ("python main.py --multiprocessing-distributed --world-size 1 --rank 0 -j 32", 8),
        ("python -m src.train --script-path model.py", 1),
        ("python -m pytest tests/test_data.py", 1),
        ("python -m streamlit run app.py", 1),
        ("xargs -I{} -P 4 torchrun --nproc_per_node=2 train.py", 8),
        ("parallel -j 4 accelerate launch --num_processes 2 train.py ::: 1 2", 8),
        ("xargs -P 4 python train.py --n_gpus 2", 8),
        ("srun --gpus 16 python train.py", 1),
        ("srun --gpus-per-node 4 python train.py", 4),
        ("python -m accelerate.commands.launch --num_processes 2 train.py", 2),
        ("deepspeed --num_gpus 4 train.py --deepspeed", 4),
        ("deepspeed train.py", 8),
        ("deepspeed --include localhost:0,1,2@other:3 train.py", 3),
        ("deepspeed --include worker-1 train.py", 8),
        ("deepspeed --include worker-1@worker-2:0,1 train.py", 2),
        ("srun --ntasks-per-node=4 python train.py", 4),
        ("srun -N 2 -n 16 python train.py", 8),
        ("srun --ntasks-per-node=1 torchrun --nproc-per-node 8 train.py", 8),
        ("mpirun -np 4 python train.py", 4),
        ("mpirun -N 4 python train.py", 4),
        ("mpirun -np 16 -H a:8,b:8 -bind-to none -map-by slot python train.py", 8),
        ("mpirun -np 16 --map-by ppr:4:node python train.py", 4),
        ("horovodrun -np 6 -H a:4,b:2 python train.py", 4),
        ("mpirun -np 6 -H a,b python train.py", 6),
        ("mpiexec.hydra -n 16 -ppn 8 python train.py", 8),
        ("srun -N2 -n16 python train.py", 8),
        ("flux run -N 2 -n 16 python train.py", 8),
        ("horovodrun -np 4 -H localhost:4 python train.py", 4),
        ("horovodrun --num-proc 4 python train.py", 4),
        ("aprun -n 16 -N 4 python train.py", 4),
        ("ibrun python train.py", 8),
        ("ibrun -n 3 python train.py", 3),
        ("composer train.py", 8),
        ("composer -n 3 train.py --lr 1", 3),
        ("python -m composer.cli.launcher -n 3 train.py", 3),
        ("python -m xla_spawn --num_cores 5 train.py", 5),
        ("python -m some.launcher train.py", 8),
        ("python -m torch_xla.distributed.xla_spawn train.py", 8),
        ("python -m cProfile -o out train.py", 1),
        ("python -m line_profiler train.py", 1),
        ("parallel -j 6 python train.py --seed ::: 1 2 3 4 5 6 7", 6),
        ("xargs -P6 -n1 python train.py --seed", 6),
        ("jsrun --nprocs 6 python train.py", 6),
        ("somewhat -n 6 python train.py", 1),
        ("LOCAL_WORLD_SIZE=6 python train.py", 6),
        ("env WORLD_SIZE=16 NNODES=2 python train.py", 8),
        ("nohup nice -n 5 torchrun --nproc-per-node 2 train.py", 2),
        ("bash -c 'torchrun --nproc-per-node 5 train.py'", 5),
        ("docker run --gpus all image torchrun --nproc-per-node 7 train.py", 7),
        ("nice numactl --cpunodebind 0 uv run torchrun --nproc-per-node 2 train.py", 2),
    ],
)
def test_the_processes_of_a_node_are_counted(command: str, ranks: int) -> None:
    assert section(command)["ranks_per_node"] == ranks


@pytest.mark.parametrize(
    ("command", "noted"),
    [
        ("somewhat -n 6 python train.py", True),
        ("somewhat -n name python train.py", False),
        ("somewhat exec python train.py", False),
        ("somewhat -n 6 --np 6 python train.py", False),
        ("mpirun -x 5 -n 6 python train.py", False),
    ],
)
def test_a_starter_that_is_not_known_is_told(command: str, noted: bool) -> None:
    told = "command line: not read: somewhat -n: no launcher of that name is known"
    notes = read_command(command.split()).notes
    assert notes == ((f"{told}; it is taken to start one process",) if noted else ())


@pytest.mark.parametrize(
    "option",
    [
        *("--num-workers 6", "--num_workers=6", "--dataloader_num_workers 6", "-j 6", "-j6"),
        *("--dataloader-num-workers=6", "--data.num_workers 6", "+data.num_workers=6"),
        *("-j2 --workers 6", "--workers 6 -x"),
        *("--workers 2 --workers 6", "--loader.init_args.num-workers 6", "num_workers=6"),
    ],
)
def test_workers_are_spelt_in_many_ways(option: str) -> None:
    assert section(f"python train.py --flag {option} --other")["workers"] == 6


@pytest.mark.parametrize(
    ("words", "resumes"),
    [("--resume", True), ("--resume --lr 1", True), ("--amp", None), ("--amp --lr 1", None)],
)
def test_a_word_alone_may_ask_to_resume(words: str, resumes: bool | None) -> None:
    assert section(f"python train.py {words}").get("resume") is resumes


def test_what_only_looks_like_workers_is_none() -> None:
    words = "--preprocessing_num_workers 9 --max_workers 9 --valid.num_workers 9 --loader.workers x"
    found = read(f"python train.py {words}")
    assert [fact.value for fact in found.facts if fact.key == "workers"] == [None]
    assert [fact.value for fact in found.facts if fact.key == "loaders"] == [2]


def test_an_origin_names_the_option_or_the_line() -> None:
    words = shlex.split("torchrun --nproc-per-node 2 train.py --num-workers 4")
    own = {fact.key: fact.where for fact in read_command(words).facts}
    line = {fact.key: fact.where for fact in read_command(words, "run.sh:7").facts}
    assert (own["workers"], own["ranks_per_node"]) == ("--num-workers", "--nproc-per-node")
    assert (line["workers"], line["ranks_per_node"]) == ("run.sh:7", "run.sh:7")


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("python t.py --config a.yaml --deepspeed d.json", [("a.yaml", ""), ("d.json", "zero")]),
        (
            "accelerate launch --config_file a.yml t.py b.json",
            [("a.yml", "accelerate"), ("b.json", "")],
        ),
        ("bash run.sh --num-workers 2", [("run.sh", "script")]),
        ("sbatch --mem=1G job.slurm", [("job.slurm", "script")]),
        (
            "sbatch -N 2 -pgpu --gres gpu:1 --exclusive -W job.sh -c a.yaml",
            [("job.sh", "script"), ("a.yaml", "")],
        ),
        ("sbatch --parsab -N 2 -- job.sh", [("job.sh", "script")]),
        ("sbatch --of-tomorrow job.sh", [("job.sh", "script")]),
        ("bash -euo pipefail run.sh", [("run.sh", "script")]),
        ("bash --rcfile x +x run.sh", [("run.sh", "script")]),
        ("sbatch --wrap 'bash job.sh'", [("job.sh", "script")]),
        ("sbatch -p gpu --wrap='bash job.sh' -W", [("job.sh", "script")]),
        ("sbatch --wra 'bash job.sh' --mem 1G", [("job.sh", "script")]),
        ("sbatch job.sh --wrap 'bash other.sh'", [("job.sh", "script")]),
        ("sbatch --wrap", []),
        ("sbatch --comment --wrap=x job.sh", [("job.sh", "script")]),
        ("sbatch -J --wrap job.sh", [("job.sh", "script")]),
        ("sbatch -o --wrap --wrap 'bash job.sh'", [("job.sh", "script")]),
        ("sbatch -N", []),
        ("sbatch", []),
        ("python t.py --config hub/name --deepspeed", []),
    ],
)
def test_files_that_are_named_are_wanted(command: str, wanted: list[tuple[str, str]]) -> None:
    assert [(one.path, one.kind) for one in read(command).wanted] == wanted


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("torchrun --nproc-per-node 8", "command line: torchrun is given no script"),
        ("accelerate launch", "command line: accelerate is given no script"),
        ("docker run --rm", "command line: docker run is given no image"),
        ("docker run --name", "command line: docker run is given no image"),
        ("bash -c \"python 't.py\"", "bash -c: is not a command: No closing quotation"),
        ("docker run -m lots image", "docker run: -m: 'lots' is not a size; a number with KiB, MiB, GiB or TiB is accepted"),
    ],
)  # fmt: skip
def test_what_is_no_command_is_a_problem(command: str, told: str) -> None:
    assert read(command).problems == (told,)


def test_a_container_s_line_states_limits_and_mounts() -> None:
    found = read(
        "docker run --rm -it --gpus all --shm-size=8g -m 64g --ulimit nofile=4096:8192"
        " --ulimit memlock=-1 --pids-limit 512 --cpus 7.5 -v /data:/in:ro -v /srv/out:/out"
        " -e OMP_NUM_THREADS=3 -w /out image python train.py --output_dir run --cache_dir /tmp/c"
    )
    (stated,) = found.stated
    facts = {fact.key: fact.value for fact in found.facts}
    assert stated._replace(at={}) == (
        "new-container:docker", {}, 64 * 2**30, 8 * 2**30, 4096, 2**64 - 1, 512, 7.5
    )  # fmt: skip
    assert (facts["output_dir"], facts["threads"]) == ("/srv/out/run", 3)
    assert found.notes == ("the cache dir /tmp/c (--cache_dir) is not mounted from this host",)


@pytest.mark.parametrize(
    ("option", "size"),
    [
        ("", 2**26),
        *(
            ("--ipc=host", None),
            ("--ipc=host --shm-size=8g", None),
            ("--shm-size=1g --ipc=host", None),
        ),
        *(("--ipc container:a --shm-size 1g", None), ("--ipc=none --shm-size 1g", 0)),
        *(("--ipc=private", 2**26), ("--ipc=private --shm-size=1g", 2**30)),
        *(("--ipc=shareable", 2**26), ("--shm-size=0", 2**26), ("--shm-size=1", 1)),
        ("--shm-size 1gb", 2**30),
    ],
)
def test_a_container_has_64_mib_where_nobody_says_otherwise(option: str, size: int | None) -> None:
    (stated,) = read(f"docker run {option} image python train.py").stated
    assert stated.shm == size


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("-N 2 -pgpu --mem=4G", "-N, --mem"),
        ("-c8 --nodes 2", "-c, --nodes"),
        ("--job-name x -W -o out", ""),
    ],
)
def test_what_a_job_is_asked_for_beside_its_script_is_not_read(options: str, named: str) -> None:
    told = f"command line: {named} of sbatch: not read; lines of #SBATCH are"
    assert list(read(f"sbatch {options} job.sh").notes) == ([told] if named else [])


@pytest.mark.parametrize(
    ("command", "noted"),
    [
        ("parallel python train.py ::: 1 2", True),
        ("parallel -j 50% python train.py ::: 1 2", True),
        ("parallel -j0 python train.py ::: 1 2", True),
        ("xargs -P 0 python train.py", True),
        ("xargs -P 9999999 python train.py", True),
        (f"parallel -j {'9' * 5000} python train.py", True),
        ("xargs python train.py", False),
        ("parallel -j4 python train.py ::: 1 2", False),
    ],
)
def test_how_many_go_beside_is_told_where_it_is_not_known(command: str, noted: bool) -> None:
    starter = command.split()[0]
    told = f"command line: how many runs {starter} has at once is not known here; if they are"
    notes = read_command(command.split()).notes
    assert notes == ((f"{told} several, state --ranks-per-node N",) if noted else ())


@pytest.mark.parametrize("option", ["-bs", "-backbone", "-bind-to", "-job"])
def test_an_option_of_several_letters_is_one_word(option: str) -> None:
    found = read_command(["python", "train.py", option, "resnet"])
    assert not [fact for fact in found.facts if fact.problem]
