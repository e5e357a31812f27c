# SPDX-License-Identifier: GPL-3.0-or-later
"""What a script sets counts as the shell has it; under a condition the larger number."""

from __future__ import annotations

import pytest
from mlhost_limits.words.facts import Words
from mlhost_limits.words.launchers import read_script
from mlhost_limits.words.precedence import take

RUN = "python train.py --num_workers $W"
FILES = {
    "env.sh": "export W=40\n",
    "deep.sh": "source env.sh\n",
    "loop.sh": "source loop.sh\n" * 40,
    "cond.sh": "W=2\nif a; then W=40; fi\n",
    "conf/own.sh": "W=12\n",
}


def read(text: str) -> Words:
    return read_script(text, "run.sh", {}, lambda path: FILES.get(path, ""))


def find_workers(text: str) -> tuple[object, bool]:
    """Return the workers, and whether a condition is told of."""
    said = read(text)
    taken = take(said, {}, "/srv")
    value = None if taken.problems else taken.section["workers"]
    return value, any("by a condition" in note for note in said.notes)


@pytest.mark.parametrize(
    ("script", "workers", "told"),
    [
        (f"W=40; if [ -n \"$DEBUG\" ]; then W=0; fi; {RUN}", 40, True),
        (f"W=2\nif [ $MODE = big ]; then\n  W=8\nelse\n  W=2\nfi\n{RUN}", 8, True),
        (f"if true; then W=8; else W=2; fi; {RUN}", 8, True),
        (f"W=1\ncase $1 in\n  big) W=16 ;;\n  *) W=2 ;;\nesac\n{RUN}", 16, True),
        (f"case $1 in a) W=16;; *) W=2;; esac; {RUN}", 16, True),
        (f"W=4; [ \"$1\" = debug ] && W=0; {RUN}", 4, True),
        (f"W=4; [ \"$1\" = debug ] || W=6; {RUN}", 6, True),
        (f"W=4; cd x && W=2; {RUN}", 2, False),
        (f"W=4; [ -d x ]; W=2; {RUN}", 2, False),
        (f"if [ -z \"$W\" ]; then W=3; fi; {RUN}", 3, False),
        (f"W=4; X=1; if a; then X=2; fi; {RUN}", 4, False),
        (f"if a; then b; fi; W=4; W=2; {RUN}", 2, False),
        (f"W=4; if a; then unset W; fi; {RUN}", 4, False),
        (f"W=8; (( N > 1 )) && W=2; {RUN}", 8, True),
        (f"W=8; grep -q x f && W=2; {RUN}", 8, True),
        (f"W=8; mkdir -p x && W=2; {RUN}", 2, False),
        (f"W=8; while getopts w: o; do case $o in w) W=$OPTARG ;; z) W=0 ;; esac; done; {RUN}", 8, True),
        ("if a; then W=0; fi\npython t.py --num_workers ${W:-8}", 8, True),
        ("if a; then W=16; fi\npython t.py --num_workers ${W:-8}", 16, False),
        (f"if a; then W=0; fi\n: ${{W:=16}}\n{RUN}", 16, True),
        (f"source cond.sh; {RUN}", 40, True),
    ],
)  # fmt: skip
def test_under_a_condition_the_larger_number_counts(script: str, workers: int, told: bool) -> None:
    assert find_workers(script) == (workers, told)


@pytest.mark.parametrize(
    ("script", "workers"),
    [
        ("W=4; ((W*=2))", 8),
        ("W=2; (( W += 38 ))", 40),
        ("W=4; let W+=4", 8),
        ("let W=4*2 X=1", 8),
        ("W=4; ((W++))", 5),
        ("W=4; ((W--))", 3),
        ("((W=N*2))", None),
        (": ${W:=4}", 4),
        ("W=6; : ${W:=4}", 6),
        ("W=4; unset W; W=${W:-1}", 1),
        ("W=4; read -r W < f; W=${W:-1}", None),
        ("printf -v W %s 8", None),
        ("W=2; source env.sh", 40),
        ("W=2; . deep.sh", 40),
        ("W=2; source gone.sh", 2),
        ("W=2; source loop.sh", 2),
        ("source env.sh; W=3", 3),
        ("W=4; ((++W))", 5),
        ("W=4; ((--W))", 3),
        ("W=4; (W=8)", 4),
        ("W=4\n(\nW=8\n)", 4),
        ("W=4; (source env.sh)", 4),
        ("W=4; W=8 &", 4),
        ("W=; W=${W:-6}", 6),
        ("W=${NOPE:+9}6", 6),
        ("A=x; W=${A:+7}", 7),
        ("A=(1 2) # two\nW=9", 9),
        ("A=(1 2); W=${#A[@]}", 2),
        ("declare -a A=(7)\nW=${A[@]}", 7),
        ("A=(\n 5 $(date) \n)\nW=3", 3),
        ("cat > job_$((1+1)).sh <<EOF\nW=99\nEOF\nW=3", 3),
        ("cat <<'END-1' > x\nW=99\n  END-1\nEND-1\nW=3", 3),
        ("set -- 3 5\nW=$2", 5),
        ("set -- 3 5\nshift\nW=$1", 5),
        ("set_w() { W=16; }\nW=2\nset_w", 16),
        ("W=32\nf() {\n W=0\n}\ntrap f EXIT", 32),
        ("cd conf; source own.sh", 12),
        ("W=32\nf() { local W=4; echo $W; }\nf", 32),
        ("W=32\nf() {\n local W=4 X=1\n V=6\n}\nf\nW=$V", 6),
        ("while getopts w: o; do case $o in w) W=$OPTARG ;; esac; done\nW=${W:-5}", 5),
    ],
)
def test_what_is_set_counts_from_there_on(script: str, workers: int | None) -> None:
    assert find_workers(f"{script}\n{RUN}")[0] == workers


@pytest.mark.parametrize(
    ("script", "folder"),
    [
        ("cd proj", "proj"),
        ("cd proj/sub && true", "proj/sub"),
        ("cd /abs", "/abs"),
        ("cd proj\ncd ..", ""),
        ("cd /abs; cd sub", "/abs/sub"),
        ("cd $WHERE", ""),
        ("pushd proj >/dev/null", "proj"),
        ("cd a b", ""),
        ("cd a; cd -", ""),
        ("pushd a; popd", ""),
        ("(\ncd a\nmake\n)", ""),
        ("cd a &", ""),
        ("(cd proj; ls)", ""),
    ],
)
def test_files_are_looked_for_where_the_script_went(script: str, folder: str) -> None:
    said = read(f"{script}\npython t.py --config c.yaml --output_dir out --cache_dir /c")
    assert [(one.path, one.folder) for one in said.wanted] == [("c.yaml", folder)]
    paths = {fact.key: fact.value for fact in said.facts if fact.key.endswith("_dir")}
    assert paths == {"output_dir": f"{folder}/out".lstrip("/" * (not folder)), "cache_dir": "/c"}


@pytest.mark.parametrize(
    ("script", "workers", "ranks"),
    [
        ("r() { torchrun --nproc-per-node \"$1\" t.py --workers $2; }\nr 4 6", 6, 4),
        ("r() {\n local n=$1; local w=$2\n torchrun --nproc-per-node $n t.py --workers $w\n}\nr 2 3", 3, 2),
        ("function r {\n python t.py --workers ${1:-4}\n}\nr 40", 40, 1),
        ("r() { python t.py --workers ${1:-4}; }\nr", 4, 1),
        ("r() { python t.py --workers 4 \"$@\"; }\nr --workers 40", 40, 1),
        ("r() { n=$1; shift; torchrun --nproc-per-node $n t.py \"$@\"; }\nr 2 --workers 5", 5, 2),
        ("r()\n{\n n=$1\n shift\n torchrun --nproc-per-node $n t.py \"$@\"\n}\nr 2 --workers 5 > log 2>&1", 5, 2),
        ("r() { python t.py --workers $1; }\nr 3 &\nr 3 &\nwait", 3, 2),
        ("r() { python t.py --workers $1; }\nr 3\nr 7 | tee log", 7, 1),
        ("s() { python t.py --workers $1; }\nr() { s $1; }\nr 9", 9, 1),
        ("W=6\nr() { python t.py --workers $1; }\nr $W", 6, 1),
    ],
)  # fmt: skip
def test_arguments_of_a_function_are_put_in(script: str, workers: int, ranks: int) -> None:
    taken = take(read(script), {}, "/srv")
    assert taken.problems == ()
    assert (taken.section["workers"], taken.section["ranks_per_node"]) == (workers, ranks)


def test_arguments_of_a_function_are_said_not_to_be_put_in() -> None:
    said = read("train() { python t.py --num_workers ${1:-4}; }\nls && train 40\n")
    assert "run.sh:2: train is given arguments, which are not put in" in said.notes
    assert not read("train() { python t.py; }\ntrain\n").notes


@pytest.mark.parametrize("path", ["s3://b/out", "~/out", "/out"])
def test_a_path_that_is_not_relative_stays(path: str) -> None:
    said = read(f"cd proj; python t.py --output_dir {path}")
    assert [fact.value for fact in said.facts if fact.key == "output_dir"] == [path]


@pytest.mark.parametrize(
    ("script", "number"),
    [
        ("ulimit -n 64; python p.py", 1),
        ("(ulimit -n 64; python p.py)", 0),
        ("(cd x; ulimit -n 64; python p.py)", 0),
        ("(python p.py); ulimit -n 64; python q.py", 1),
    ],
)
def test_a_limit_within_brackets_ends_with_them(script: str, number: int) -> None:
    said = read(script)
    assert len(said.ulimits) == number
    told = "run.sh:1: ulimit -n 64 counts within its brackets alone"
    assert (told in said.notes) == (number == 0)


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ('tmux new-session -d -s $i "python train.py"', 4),
        ("screen -dmS run$i python train.py", 4),
        ('tmux send-keys -t $i "python train.py" C-m', 4),
        ("python train.py", 1),
    ],
)
def test_sessions_that_are_detached_run_at_once(line: str, ranks: int) -> None:
    said = read(f"for i in 0 1 2 3; do {line}; done\n")
    assert take(said, {}, "/srv").section["ranks_per_node"] == ranks


@pytest.mark.parametrize(
    ("text", "given", "workers"),
    [
        ("python t.py --workers $1", ("12",), 12),
        ("python t.py --workers ${2:-4}", ("12",), 4),
        ('W=$1; shift; python t.py --workers $W "$@"', ("7", "--prefetch_factor", "3"), 7),
        ("W=5\nlaunch() { python t.py --workers $W; }\nW=6\nlaunch", (), 6),
    ],
)
def test_a_script_has_the_arguments_that_it_is_given(
    text: str, given: tuple[str, ...], workers: int
) -> None:
    said = read_script(text, "run.sh", {}, arguments=given)
    assert take(said, {}, "/srv").section["workers"] == workers


def test_a_command_gives_its_script_arguments() -> None:
    said = read_script("bash tools/dist_train.sh c.py 8", "run.sh", {})
    assert [one.arguments for one in said.wanted if one.kind == "script"] == [("c.py", "8")]
