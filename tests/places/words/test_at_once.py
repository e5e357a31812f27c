# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that a script has at once: behind ``&``, in loops, until it waits."""

from __future__ import annotations

import pytest
from mlhost_limits.words.facts import Words
from mlhost_limits.words.launchers import read_script
from mlhost_limits.words.precedence import take

RUN = "python train.py --num_workers 4 --batch-size 8"


def read(text: str) -> Words:
    return read_script(text.replace("RUN", RUN), "a.sh", {})


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("RUN", 1),
        ("RUN &\nwait", 1),
        ("RUN\nRUN", 1),
        ("RUN & RUN & wait", 2),
        ("RUN & RUN", 2),
        ("RUN &\nwait\nRUN &\nwait", 1),
        ("RUN &\nRUN &\nwait\nRUN &", 2),
        ("RUN > log 2>&1 &\nRUN &> log &", 2),
        ("RUN && RUN", 1),
        ("RUN || RUN | cat", 1),
        ("for i in 0 1 2; do RUN & done", 3),
        ("for i in 0 1 2\ndo\n  CUDA_VISIBLE_DEVICES=$i RUN --seed $i &\ndone\nwait", 3),
        ("for i in 0 1 2; do RUN; done", 1),
        ("for i in 0 1 2; do RUN; done\nRUN &", 1),
        ("for i in {0..3}; do RUN & done", 4),
        ("for i in {3..0} 9; do RUN & done", 5),
        ("for i in $(seq 6); do RUN & done", 6),
        ("for i in `seq 2 6`; do RUN & done", 5),
        ("for ((i=0; i<4; i++)); do RUN & done", 4),
        ("for ((i=1;i<=4;i++)) do RUN & done", 4),
        ("for a in 1 2; do for b in 1 2 3; do RUN & done; done", 6),
        ("for a in 1 2; do true; done; for b in 1 2 3; do RUN & done", 3),
        ("GPUS='0 1 2'\nfor i in $GPUS; do RUN & done", 3),
        ("if true; then RUN & else RUN & fi", 1),
        ("if true; then RUN & elif false; then RUN & else RUN & fi\nRUN &", 2),
        ("case $1 in a) RUN & ;; b) RUN & ;; esac", 1),
        (
            "for i in 1 2; do (cd there; torchrun --nproc-per-node 2 train.py --num_workers 4) & done",
            4,
        ),
        ("nohup RUN & setsid RUN &", 2),
        ("python watch.py &\nRUN", 1),
        ("python watch.py --output a.csv &\ntorchrun --nproc-per-node 8 train.py", 8),
        ("python eval.py --num_workers 1 &\ntorchrun --nproc-per-node 8 train.py", 8),
        ("for s in {0..15}; do python prepare.py --shard $s & done; wait\nRUN", 16),
        (
            "for s in {0..15}; do python prepare.py & done; wait; torchrun --nproc-per-node 8 t.py",
            8,
        ),
        ("torchrun --nproc-per-node 8 t.py\nfor a in a b c d; do RUN & done; wait", 8),
        ("for i in 0 1 2 3 4 5 6 7; do RUN --device $i & done; wait", 8),
        ("for i in 0 1 2 3; do RUN --gpus $i & done; wait", 4),
        ("for i in 1 2 3 4; do RUN --device cuda & done; wait", 4),
        ("RUN 2>&1 | tee a.log &\nRUN 2>&1 | tee b.log &\nwait", 2),
        ("RUN >& a.log\nRUN >& b.log", 1),
        ("for g in 0 1; do for s in 1 2 3; do RUN; done & done; wait", 2),
        ("for i in 1 2 3; do\n(\nexport A=1\nRUN\n) &\ndone\nwait", 3),
        ("for i in 1 2 3; do { RUN; echo; } & done", 3),
        ("( RUN; RUN ) & ( RUN ) &", 3),
        ("for i in 1 2; do RUN; done &\nfor i in 1 2; do RUN; done &", 2),
        ("run() { RUN & }\nrun\nrun\nwait", 2),
        ("run() {\n  RUN\n}\nfor i in 0 1 2 3; do run $i & done", 4),
        ("function run {\n  RUN\n}\nrun\nrun", 1),
        ("for a in 1 2 3; do\nfor g in 0 1; do RUN & done\nwait\ndone", 2),
        ("RUN & A=$!\nRUN &\nwait $A\nRUN &", 2),
        ("RUN &\nRUN &\nfor p in $pids; do wait $p; done\nRUN", 2),
        ("for r in 0 1 2 3; do RUN --rank $r --world_size 4 & done", 4),
        ("#SBATCH --ntasks=4\nfor i in 1 2 3 4; do srun --exclusive -N1 -n1 RUN & done\nwait", 4),
        ("#SBATCH --ntasks-per-node=4\nfor i in 1 2 3 4; do srun -n1 RUN & done\nwait", 4),
        ("#SBATCH -N 2 -n 8\nfor i in 1 2 3 4 5 6 7 8; do srun -N1 -n1 RUN & done\nwait", 4),
        ("#SBATCH --ntasks=8\nfor i in 0 1 2 3 4 5 6 7; do RUN & done\nwait", 8),
        ("#SBATCH --ntasks=4\nsrun -n 1 RUN", 1),
        ("#SBATCH --ntasks=4\nsrun RUN", 4),
        ("#SBATCH --ntasks=8\nRUN", 1),
        ("A=(1 2 3)\nA+=(4)\nfor i in ${A[@]}; do RUN & done", 4),
        ("A=1; A+=' 2'; for i in $A; do RUN & done", 2),
        ("GPUS=(0 1 2)\ntorchrun --nproc-per-node ${#GPUS[@]} train.py", 3),
        ("N=${1:-6}\ntorchrun --nproc-per-node $N train.py", 6),
        ("#SBATCH -N 4\nfor i in 1 2 3 4 5; do srun -N1 RUN & done", 2),
        ("#SBATCH -N 2\nfor i in 1 2 3 4 5; do RUN & done", 5),
        ("for i in {1..99999}; do RUN & done", 4096),
    ],
)
def test_runs_at_once_are_counted(text: str, ranks: int) -> None:
    found = read(text)
    assert not found.problems
    assert take(found, {}, "/").section["ranks_per_node"] == ranks


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("for i in $(cat list); do\nRUN &\ndone", 2),
        ("for i in *.yaml; do RUN & done", 1),
        ('for i in "$@"; do RUN & done', 1),
        ("while read -r name; do\nRUN &\ndone < list", 2),
        ("for i in 1 2 3 4; do\nRUN &\nif [ $i = 2 ]; then wait; fi\ndone", 3),
        ("for i in $(seq 999); do RUN & done", 1),
        ("for i in $(nvidia-smi -L); do RUN & done", 1),
        ("for i in 1 2; do bash run.sh $i & done", 1),
        ("./a.sh &\n./b.sh &", 2),
        ("for i in 1 2; do\ndocker run --shm-size 1g img RUN &\ndone", 2),
        (
            "for i in 1 2 3; do\nwhile [ $(jobs -r | wc -l) -ge 2 ]; do sleep 5; done\nRUN &\ndone",
            2,
        ),
        ("t() {\nwait -n\n}\nfor i in 1 2 3; do t\nRUN &\ndone", 2),
    ],
)
def test_what_only_the_shell_knows_is_told(text: str, line: int) -> None:
    told = f"a.sh:{line}: how many runs a.sh has at once is not known here; if they are several"
    assert read(text).notes == (f"{told}, state --ranks-per-node N",)


def test_it_is_told_how_they_count() -> None:
    told = "a.sh has 2 runs of one script at once: the largest of each value counts for each"
    found = read("RUN &\nRUN &")
    assert found.notes == (told,)
    assert not read("for i in $(cat list); do RUN; done").notes


def test_what_is_stated_counts() -> None:
    taken = take(read("RUN & RUN &"), {"ranks_per_node": 3}, "/")
    assert "ranks_per_node" not in taken.section
