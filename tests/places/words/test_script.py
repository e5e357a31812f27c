# SPDX-License-Identifier: GPL-3.0-or-later
"""A batch script says what its job gets, and what it runs with which variables."""

from __future__ import annotations

import pytest
from mlhost_limits.words.facts import Words
from mlhost_limits.words.launchers import read_command, read_script
from mlhost_limits.words.precedence import take
from mlhost_limits.words.shell_text import strip_comments
from mlhost_limits.words.shell_variables import expand

JOB = """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node 1   # each a launcher
#SBATCH --gres=gpu:a100:8 -c 64
#SBATCH --mem=128G
##SBATCH --mem=1G
export OMP_NUM_THREADS=4
HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
ARGS=(
  --num_workers ${WORKERS:-6}  # many
  --output_dir "$OUT/run"
)
cat > note.txt <<END
python train.py --num_workers 99
END
echo "it's on" && srun torchrun --nnodes $SLURM_NNODES \\
  --nproc_per_node $SLURM_GPUS_ON_NODE --rdzv_endpoint $(echo $HEAD | cut -c1-9):29500 \\
  train.py "${ARGS[@]}" --save_total_limit 3 2>&1 | tee log.txt
"""


def read(text: str, **environment: str) -> Words:
    return read_script(text, "job.sh", environment)


def test_a_job_is_read_with_its_variables() -> None:
    found = read(JOB, OUT="/srv")
    taken = take(found, {}, "/here")
    told = {key: taken.section[key] for key in ("workers", "ranks_per_node", "threads")}
    assert told == {"workers": 6, "ranks_per_node": 8, "threads": 4}
    assert (taken.section["output_dir"], taken.section["save_total_limit"]) == ("/srv/run", 3)
    assert (found.problems, taken.problems) == ((), ())
    (stated,) = found.stated
    assert (stated.memory, stated.at["memory"], stated.cpus) == (2**37, "job.sh:4", 64.0)
    origins = {fact.key: fact.where for fact in found.facts if fact.rank > 3}
    assert (origins["workers"], origins["threads"]) == ("job.sh:15", "job.sh:6")


def test_a_variable_that_nobody_sets_is_named_with_its_line() -> None:
    taken = take(read(JOB), {}, "/here")
    assert taken.problems == (
        "job.sh:15: --output_dir: '$OUT/run' is not known here: it is a template, or a variable"
        " that is not set; mend it, or state --output-dir DIR",
    )
    assert take(read(JOB), {"output_dir": "/x"}, "/here").problems == ()


@pytest.mark.parametrize(
    ("text", "workers"),
    [
        ("for W in 3; do python t.py --num_workers $W; done", 3),
        ("for W in 3 12 5; do python t.py --num_workers $W; done", 12),
        ("for W in 3 auto; do python t.py --num_workers $W; done", 3),
        ("W=3; python t.py --num_workers $W", 3),
        ("W=3; W=4; python t.py --num_workers $W", 4),
        ("W=3; python t.py --num_workers $W; W=9", 3),
        ("W=3 && V=$W && python t.py --num_workers $V", 3),
        ("export W=3; python t.py --num_workers ${W}", 3),
        (";".join(f"A{at}=1" for at in range(15)) + ";W=3;python t.py --num_workers $W", 3),
    ],
)
def test_a_line_uses_what_it_assigns(text: str, workers: int) -> None:
    taken = take(read(text), {}, "/here")
    assert (taken.section["workers"], taken.problems) == (workers, ())


def test_what_only_the_job_knows_is_asked_for() -> None:
    taken = take(read("python t.py --output_dir /scratch/$SLURM_JOB_ID"), {}, "/here")
    assert "output_dir" not in taken.section
    assert taken.notes == ("output_dir (job.sh:1) is known only in the job",)
    assert "--output-dir DIR" in taken.asked


@pytest.mark.parametrize(
    ("lines", "memory"),
    [
        ("--mem=4000", 4000 * 2**20),
        ("--mem=0", None),
        ("--mem-per-cpu=2G", 2**31),
        ("--mem-per-cpu=2G --ntasks-per-node=2", 2**32),
        ("--mem-per-gpu=32G", None),
        ("--mem=1G # --mem=2G", 2**30),
        ("--mem-per-cpu=2G --cpus-per-task=8", 2**34),
        ("--mem-per-cpu=2G -c 8 --ntasks-per-node=2", 2**35),
        ("--mem-per-gpu=32G --gpus-per-node=a100:4", 2**37),
    ],
)
def test_the_memory_of_a_job_is_that_of_a_node(lines: str, memory: int | None) -> None:
    stated = read(f"#!/bin/sh\n#SBATCH {lines}\n").stated
    assert [one.memory for one in stated if one.memory] == ([memory] if memory else [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("#SBATCH --mem=lots\n", "job.sh:1: --mem: 'lots' is not a size; a number with KiB, MiB, GiB or TiB is accepted"),
        ("\n#SBATCH -c many\n", "job.sh:2: --cpus-per-task: 'many' is not a whole number"),
        ("\npython t.py --num_workers '8\n", "job.sh:2: is not a command: No closing quotation"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_a_problem_with_its_line(text: str, told: str) -> None:
    assert read(text).problems == (told,)


def test_a_script_that_is_elsewhere_is_no_problem_of_its_caller() -> None:
    found = read(
        "source /opt/env/activate\n. /x\nsource /opt/env/setup\nbash $SETUP\npython t.py --config $CONFIG\n"
    )
    assert [(one.path, one.must) for one in found.wanted] == [
        ("/x", False),
        ("/opt/env/setup", False),
    ]
    assert found.notes == ("job.sh:4: $SETUP is not known here",)
    assert [one.problem[:20] for one in found.facts if one.problem] == ["job.sh:5: --config: "]


def test_a_line_that_starts_nothing_may_be_odd() -> None:
    assert read("echo 'it is\nls 'x\n").problems == ()


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$A ${A} ${A:-y} ${B:-y} ${B}", "x x x y ${B}"),
        ('"${L[@]}" ${L[*]}', "1 2 1 2"),
        ("$A$A", "xx"),
        ("\\$5 100%", "\\$5 100%"),
    ],
)
def test_variables_are_filled_in(text: str, expanded: str) -> None:
    assert expand(text, {"A": "x", "L": "1 2"}) == expanded


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("python t.py --dataset x#2000 --num_workers 3 # not 4", 3),
        ("CMD='python t.py --num_workers 3'\neval $CMD", 3),
        ("bash -c 'pip install x && python t.py --num_workers 3; sync'", 3),
        ('bash -c "\n  cd x\n  python t.py \\\n --num_workers 3\n"', 3),
        ('python t.py --name "a\nb" --num_workers 3', 3),
        ("python t.py --name 'a\n\nb' \\\n --num_workers 3", 3),
        ("if true; then python t.py --num_workers 3; fi", 3),
        ("for W in 3 4; do\n python t.py --num_workers $W\ndone", 4),
        ("A=(--num_workers 3 # it's few\n)\npython t.py ${A[@]}", 3),
        ("python t.py \\\n  --num_workers 3 \\\n  > log 2>&1 &", 3),
        ("declare -x W=3\npython t.py --num_workers $W", 3),
        ("export W=3\npython t.py --num_workers $W", 3),
        ("for W in 3\ndo python t.py --num_workers $W; done", 3),
        ("for W in\npython t.py --num_workers 3", 3),
        ("cat <<END\na\npython t.py --num_workers 4\nEND\npython t.py --num_workers 3", 3),
        ("#SBATCH -c 3\npython t.py --num_workers $SLURM_CPUS_PER_TASK", 3),
        ("echo 'python t.py --num_workers 4'", None),
        ("# python t.py --num_workers 4", None),
        ("python t.py --num_workers $(nproc)", "problem"),
        ("python t.py --num_workers ''", "problem"),
    ],
)
def test_a_shell_s_ways_of_writing(text: str, found: object) -> None:
    facts = [fact for fact in read(text).facts if fact.key == "workers"]
    said = ["problem" if fact.problem else fact.value for fact in facts]
    assert said == ([] if found is None else [found])


def test_who_counts_the_gpus_takes_all() -> None:
    text = "torchrun --nproc_per_node $(nvidia-smi -L | wc -l) t.py"
    assert take(read(text), {}, "/here").section["ranks_per_node"] == 8


def test_variables_that_double_come_to_an_end() -> None:
    lines = "".join(f"A{n + 1}=$A{n}$A{n}\n" for n in range(64))
    found = read(f"A0=xxxxxxxx\n{lines}python t.py --num_workers 2 --name $A64\n")
    assert [fact.value for fact in found.facts if fact.key == "workers"] == [2]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a # b", "a "),
        ("# a\nb", "\nb"),
        ("a#b", "a#b"),
        ("a \\# b # c", "a \\# b "),
        ("'a # b' # c", "'a # b' "),
        ('"a # \'b" # c', '"a # \'b" '),
        ('"a\\" # b" # c', '"a\\" # b" '),
        ("'a\\' # b", "'a\\' "),
    ],
)
def test_a_comment_begins_a_word_outside_of_quotes(text: str, kept: str) -> None:
    assert strip_comments(text) == kept


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ("--ntasks=16", {"all_tasks": 16}),
        ("-n16 -N2", {"all_tasks": 16, "nodes": 2}),
        ("--nodes=1-4 --time=8", {"nodes": 4}),
        ("--ntasks-per-node=2", {"ranks_per_node": 2}),
        ("--gres=gpu:a100:8", {"gpus.count": 8}),
        ("--gpus-per-node=a100:4", {"gpus.count": 4}),
        ("--gpus-per-node=99999", {"gpus.count": 99999}),
        *(("--gpus-per-node=100000", {}), ("--gres=tmpfs:3", {}), ("--gpus-per-node=x", {})),
        ("--ntasks=x", {}),
    ],
)
def test_what_a_job_asks_for(options: str, facts: dict[str, object]) -> None:
    assert {one.key: one.value for one in read(f"#SBATCH {options}\n").facts} == facts


@pytest.mark.parametrize(
    ("options", "cpus"),
    [("-c 8 --ntasks-per-node=2", 16), ("-c 8", None), ("--ntasks-per-node=2", None)],
)
def test_the_cpus_of_a_job_are_those_of_its_tasks(options: str, cpus: float | None) -> None:
    stated = read(f"#SBATCH --mem=1G {options}\n").stated
    assert [one.cpus for one in stated] == [cpus]


def test_all_that_a_job_asks_for_wrongly_is_told() -> None:
    found = read("#SBATCH --mem=lots --mem-per-cpu=x\n")
    assert [one.partition(" is")[0] for one in found.problems] == [
        "job.sh:1: --mem: 'lots'",
        "job.sh:1: --mem-per-cpu: 'x'",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ulimit -n 4096", [("n", "SH", "4096")]),
        ("ulimit -Sn 4096", [("n", "S", "4096")]),
        ("ulimit -H -n 4096", [("n", "H", "4096")]),
        ("ulimit -S -H -l unlimited", [("l", "SH", "unlimited")]),
        ("ulimit 7", [("f", "SH", "7")]),
        ("ulimit -n", []),
    ],
)
def test_what_a_shell_sets_is_kept(text: str, told: list[tuple[str, ...]]) -> None:
    assert [one[:3] for one in read(f"{text}\npython t.py").ulimits] == told


@pytest.mark.parametrize(
    ("text", "number", "noted"),
    [
        ("python t.py\nulimit -n 8192", 0, False),
        ("f() {\n ulimit -n 8192\n}\npython t.py", 0, False),
        ("f() {\n ulimit -n 8192\n}\nf\npython t.py", 1, False),
        ("if a; then ulimit -n 8192; fi; python t.py", 0, True),
        ("[ -n x ] && ulimit -n 8192\npython t.py", 0, True),
        ("ulimit -n 8192 &\npython t.py", 0, False),
        ("bash -c 'ulimit -n 8192'\npython t.py", 0, False),
        ("bash -c 'ulimit -n 8192; python t.py'", 1, False),
        ("ulimit -n 8192; python t.py; ulimit -n 100", 1, False),
        ("ulimit -n $(ulimit -Hn); python t.py", 1, False),
    ],
)
def test_a_limit_counts_for_what_is_started_behind_it(text: str, number: int, noted: bool) -> None:
    said = read(text)
    assert len(said.ulimits) == number
    assert any("ulimit" in note for note in said.notes) == noted


def test_a_comment_with_an_apostrophe_opens_no_quotation() -> None:
    found = read("echo x # it's\npython t.py --num_workers 3")
    assert [one.where for one in found.facts if one.key == "workers"] == ["job.sh:2"]


def test_a_text_is_filled_in_up_to_a_length() -> None:
    longest = "x" * 2**16
    assert expand("$A", {"A": longest}) == longest
    assert expand(longest, {}) == longest
    assert expand("$A", {"A": f"{longest}x"}) == "$A"
    for text in (f"{longest}x", "$A$A"):
        with pytest.raises(ValueError, match="characters"):
            expand(text, {"A": longest})


@pytest.mark.parametrize(
    ("text", "workers"),
    [
        ("bash <<EOF\npython t.py --num_workers 3\nEOF", 3),
        ("srun bash -s <<'EOF'\npython t.py --num_workers 3\nEOF\nexit", 3),
        ("sbatch -p gpu <<EOF\n#SBATCH -n 1\nsrun python t.py --num_workers 3\nEOF", 3),
        ("W=3\nbash <<EOF\npython t.py --num_workers $W\nEOF", 3),
        ("bash <<-EOF\n\tpython t.py --num_workers 3\n\tEOF", 3),
        ("python - <<EOF\npython t.py --num_workers 3\nEOF\npython t.py --num_workers 5", 5),
        ("cat > other.sh <<EOF\npython t.py --num_workers 3\nEOF\npython t.py --num_workers 5", 5),
        ("SIZE=$((1 << N))\npython t.py --num_workers 5", 5),
        ("bash one.sh <<EOF\npython t.py --num_workers 3\nEOF\npython t.py --num_workers 5", 5),
    ],
)
def test_a_script_in_a_here_document_is_read(text: str, workers: int) -> None:
    found = read(text)
    values = [fact.value for fact in found.facts if fact.key == "workers"]
    assert (values, found.problems) == ([workers], ())


def test_lines_of_a_here_document_are_counted_as_in_the_script() -> None:
    found = read("\n\nbash <<EOF\n\npython t.py --num_workers 3\nEOF")
    assert [fact.where for fact in found.facts if fact.key == "workers"] == ["job.sh:5"]


@pytest.mark.parametrize(
    ("writes", "text"),
    [
        ("cat > ds.json <<EOF", "3"),
        ("cat <<EOF > ./ds.json", "3"),
        ("cat >>ds.json << EOF", "3"),
        ("tee ds.json <<EOF", "3"),
        ("tee -a ds.json > /dev/null <<EOF", "3"),
        ("cat > ds.json <<'EOF'", "$N"),
        ("cat > other.json <<EOF", ""),
    ],
)
def test_what_a_script_writes_itself_is_what_a_run_reads(writes: str, text: str) -> None:
    found = read(f"N=3\n{writes}\n$N\nEOF\ndeepspeed t.py --deepspeed ds.json")
    (wanted,) = (one for one in found.wanted if one.path == "ds.json")
    assert wanted.text == text


@pytest.mark.parametrize(
    ("items", "noted"),
    [
        ("a.yaml b.yaml", True),
        ("'--num_workers 2' '--num_workers 16'", True),
        ("a.yaml", False),
        ("1e-3 1e-4", False),
        ("a.yaml 3", False),
    ],
)
def test_of_a_loop_over_settings_the_first_is_read(items: str, noted: bool) -> None:
    found = read(f"for c in {items}; do python t.py --config $c --num_workers 2; done")
    told = "job.sh:1: of the 2 items of the loop "
    assert any(note.startswith(told) for note in found.notes) == noted


def test_a_script_in_a_script_keeps_what_it_writes_itself() -> None:
    inner = "cat > b.yaml <<IN\n3\nIN\npython t.py --config b.yaml"
    found = read(
        f"cat > a.yaml <<EOF\n2\nEOF\nbash <<OUT\n{inner}\nOUT\npython t.py --config a.yaml"
    )
    assert {one.path: one.text for one in found.wanted} == {"a.yaml": "2", "b.yaml": "3"}


TEXT = """
set -ex
export RANKS=8
BATCH=4
cd /workspace && pip install -r requirements.txt
ulimit -n 65536
torchrun --nproc-per-node $RANKS train.py \\
  --dataloader_num_workers $((RANKS / 2)) --per_device_train_batch_size $((BATCH * 2))
"""


@pytest.mark.parametrize(
    "words",
    [
        ["bash", "-c", TEXT],
        ["sh", "-lc", TEXT],
        ["srun", "--ntasks=1", "bash", "-ec", TEXT],
        ["tmux", "new-session", "-d", "-s", "t", TEXT],
        ["tmux", "send-keys", "-t", "t", TEXT, "C-m"],
        ["docker", "run", "--rm", "image", "bash", "-c", TEXT],
    ],
)
def test_the_text_of_a_shell_is_read_as_a_script_is(words: list[str]) -> None:
    said = read_command(words)
    found = {fact.key: fact.value for fact in said.facts if not fact.problem}
    assert (found["workers"], found["samples"]) == (4, 8)
    assert [fact.value for fact in said.facts if fact.key == "ranks_per_node"][-1] == 8
    is_container = words[0] == "docker"
    assert [one.value for one in said.ulimits] == ["65536"] * (not is_container)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$((N*2))", "8"),
        ("$(( $N + ${N} - 1 ))", "7"),
        ("$((N / 3 * (N % 3)))", "1"),
        ("$((9999999999999999999))", "$((9999999999999999999))"),
        ("$((0 - N))", "$((0-N))"),
        ("$((N ** 9))", "$((N**9))"),
        ("$((UNKNOWN + 1))", "$((UNKNOWN+1))"),
        ("$((N / 0))", "$((N/0))"),
        ("$((TEXT + 1))", "$((TEXT+1))"),
        ("x$((N))y$((N+1))", "x4y5"),
    ],
)
def test_a_sum_is_worked_out_where_all_of_it_is_known(text: str, value: str) -> None:
    assert expand(text, {"N": "4", "TEXT": "__import__('os')"}) == value
