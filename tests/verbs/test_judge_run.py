# SPDX-License-Identifier: GPL-3.0-or-later
"""The command preflight reads what starts a run, says what it took from where, and judges it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits import cli, gather_apart

TOP = Path(__file__).parents[2]
NOBODY = 65534


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Enter a folder that every user may look into."""
    for name in (
        "LOCAL_WORLD_SIZE",
        "OMP_NUM_THREADS",
        "CUDA_VISIBLE_DEVICES",
        "SLURM_NTASKS_PER_NODE",
        "SLURM_JOB_ID",
    ):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        monkeypatch.chdir(name)
        yield Path(name)


def judge(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, list[str]]:
    """Return the status, what is printed, and the complaints."""
    status = cli.main(["preflight", *words])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert all(len(line) <= 80 for line in told.out.splitlines())
    return status, " ".join(told.out.split()), told.err.splitlines()


COMMAND = "torchrun --nproc-per-node 2 train.py --config run.json --num-workers=1"


def test_each_value_is_told_with_where_it_stands(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "run.json").write_text('{\n"num_workers": 9,\n"prefetch_factor": 3}')
    status, told, _errors = judge(capsys, "--", *COMMAND.split())
    assert status == cli.COMPLIES
    assert "note workers 1 (--num-workers), prefetch 3 (run.json:3)," in told
    assert "ranks_per_node 2 (--nproc-per-node)" in told
    assert "tensors_per_batch 8 (assumed: most batches hold fewer)" in told
    assert "workers 1 (--num-workers) counts, not 9 (run.json:2): an argument wins over a" in told


def test_an_option_wins_over_every_word(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "run.json").write_text('{"num_workers": "many", "output_dir": "${x}"}')
    words = ["run.json", "--workers", "0", "--output-dir", str(here)]
    status, told, _errors = judge(capsys, *words)
    assert status == cli.COMPLIES
    assert "run.json" not in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--workers 1", "note ranks_per_node 8 (LOCAL_WORLD_SIZE)"),
        ("--workers 1 --ranks-per-node 2", "ok process:self"),
    ],
)
def test_ranks_are_counted_where_only_the_launcher_says_so(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    told: str,
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    _status, printed, _errors = judge(capsys, *words.split())
    assert printed.startswith(told)


def test_files_may_stand_between_options(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.json").write_text('{"num_workers": 1}')
    (here / "b.json").write_text('{"prefetch_factor": 5}')
    _status, told, _errors = judge(capsys, "a.json", "--tensors-per-batch", "2", "b.json")
    assert "workers 1 (a.json:1), prefetch 5 (b.json:1)" in told


def test_a_run_that_does_not_fit_is_no_go(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "docker run --memory 1g image python t.py --num-workers 4 --batch-size 64"
    status, told, _errors = judge(capsys, "--", *line.split())
    assert status == cli.FALLS_SHORT
    assert "FAIL new-container:docker: shm_size 64MiB, required 705MiB" in told
    assert "new-container:docker memory 1GiB (docker run)" in told
    assert "new-container:docker: no word states nofile" in told
    assert "path:/dev/shm" not in told
    shared = line.replace("run", "run --ipc=host").split()
    assert "path:/dev/shm" in judge(capsys, "--", *shared)[1], "it is this host's"
    assert "process:self: nofile" not in told, "the limits of this shell are not the container's"


def test_the_tasks_of_a_container_are_counted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "docker run --ipc=host --pids-limit 12 image python t.py --num-workers 4 --batch-size 1"
    status, told, _errors = judge(capsys, "--", *line.split())
    assert status == cli.FALLS_SHORT
    assert "tasks 12, required 17" in told
    more = line.replace(" 12 ", " 17 ").split()
    assert "tasks 17, required" not in judge(capsys, "--", *more)[1]


def test_a_pod_is_judged_by_its_words_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    container = {
        "name": "train",
        "command": ["python", "t.py", "--workers=2", "--batch-size=8"],
        "resources": {"limits": {"memory": "64Gi"}},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    (here / "pod.json").write_text(json.dumps(pod))
    status, told, _errors = judge(capsys, "pod.json")
    assert status == cli.COMPLIES, told
    assert "2 pass, 0 fail, 1 unknown" in told
    assert "process:self" not in told
    assert judge(capsys, "pod.json", "--strict")[0] == cli.FALLS_SHORT, "nofile is unknown"


def test_a_job_is_judged_by_what_it_asks_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "job.sh").write_text("#SBATCH --mem=100M\npython t.py --num_workers 4\n")
    status, told, _errors = judge(capsys, "job.sh")
    assert status == cli.FALLS_SHORT
    assert "FAIL job:slurm: memory 100MiB" in told
    assert "ask Slurm for it with --mem=" in told


def test_an_output_directory_is_made_by_the_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So it need not be there."""
    words = ["--", "python", "t.py", "--num_workers", "0", "--output_dir", "new/out"]
    status, told, _errors = judge(capsys, *words)
    assert status == cli.COMPLIES, told
    assert "can make it in" in told
    (here / "new").write_text("")
    assert judge(capsys, *words)[0] == cli.FALLS_SHORT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root looks as somebody else")
def test_who_will_run_must_be_able_to_make_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--", "python", "t.py", "--num_workers", "0", "--output_dir", "new"]
    status, told, _errors = judge(capsys, "--as-user", "nobody", "--probe", "predict", *words)
    assert status == cli.FALLS_SHORT
    assert f"FAIL path:{here}/new: directory" in told


def test_a_script_that_is_elsewhere_is_noted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "run.sh").write_text("source /nowhere/setup\npython t.py --num_workers 0\n")
    status, told, _errors = judge(capsys, "run.sh")
    assert status == cli.COMPLIES
    assert "note run.sh:1: /nowhere/setup: No such file or directory" in told
    assert judge(capsys, "--", "bash", "absent.sh")[0] == cli.REFUSED


def test_the_library_that_a_file_shows_draws_the_batches(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "sft.json").write_text('{"per_device_train_batch_size": 1}')
    words = ["--", "accelerate", "launch", "sft.py", "--config", "sft.json"]
    _status, told, _errors = judge(capsys, *words)
    assert "workers 0 (assumed: transformers' default)" in told


def test_the_folder_of_a_run_is_searched(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "broken.yaml").write_text("a: [")
    (here / "package.json").write_text('{"name": "x"}')
    (here / "run.json").write_text('{"num_workers": 2}')
    (here / "other.json").write_text('{"num_workers": 3}')
    (here / "run.sh").write_text("python train.py --config run.json\n")
    status, told, _errors = judge(capsys)
    assert status == cli.COMPLIES
    assert "workers 2 (run.json:1)" in told
    assert "not taken unless something names it: other.json" in told
    (here / "launch.sh").write_text("#!/bin/sh\nmkdir -p log\nbash run.sh\n")
    (here / "build.sh").write_text("python setup.py build --output x\n")
    assert "workers 2 (run.json:1)" in judge(capsys)[1]
    (here / "again.sh").write_text("python train.py --config other.json\n")
    status, _told, errors = judge(capsys)
    assert status == cli.REFUSED
    assert errors[0].endswith("again.sh, launch.sh each start a run; name one of them")


def test_a_folder_without_a_run_is_a_question(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _told, errors = judge(capsys)
    assert status == cli.REFUSED
    assert "no file here says anything of a run; name one, or give the command" in errors[0]


def test_a_script_whose_start_is_not_read_is_told_as_such(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.sh").write_text("ssh node2 'python train.py --num_workers 4'\n")
    status, _told, errors = judge(capsys, "a.sh")
    assert status == cli.REFUSED
    assert "a.sh: says nothing of a run; state --workers N" in errors[0]
    assert "a.sh:1: not read: ssh node2: no launcher of that name is known" in errors[1]


def test_of_files_that_a_pattern_names_one_is_read_and_that_is_told(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "configs").mkdir()
    for name, workers in (("a.yaml", 2), ("b.yaml", 3), ("other.json", 4)):
        (here / "configs" / name).write_text(f"dataloader_num_workers: {workers}\n")
    line = "for c in configs/*.yaml; do python train.py --config $c; done\n"
    (here / "a.sh").write_text(line)
    status, told, _errors = judge(capsys, "a.sh")
    assert status == cli.COMPLIES
    assert "note workers 2 (configs/a.yaml:1)" in told
    assert "configs/*.yaml: configs/a.yaml is read, of 2 files that it may be" in told
    (here / "a.sh").write_text(line.replace("*.yaml", "*.toml"))
    status, _told, errors = judge(capsys, "a.sh")
    assert (status, "configs/*.toml: No such file" in errors[0]) == (cli.REFUSED, True)


def test_a_job_that_states_no_memory_is_judged_as_one_of_another_host(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = "srun python t.py --num_workers 900 --batch-size 64\n"
    (here / "a.sh").write_text(f"#SBATCH --ntasks-per-node=64\n{run}")
    _status, told, _errors = judge(capsys, "a.sh")
    assert "note this host is not the job's node" in told
    assert "memory" not in told.partition("no-go")[0].partition("process:self")[2]
    (here / "b.sh").write_text(run.replace("srun ", ""))
    assert "is not the job's node" not in judge(capsys, "b.sh")[1]


def test_settings_that_a_script_writes_are_read_from_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.sh").write_text(
        "W=3\ncat > run.yaml <<EOF\ndataloader_num_workers: $W\nEOF\n"
        "torchrun --nproc-per-node 2 train.py --config run.yaml\n"
    )
    status, told, _errors = judge(capsys, "a.sh")
    assert status == cli.COMPLIES
    assert "note workers 3 (a.sh: run.yaml:1)" in told
    assert "ranks_per_node 2 (a.sh:5)" in told


def test_two_files_that_differ_are_a_question(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.json").write_text('{"num_workers": 1}')
    (here / "b.json").write_text('{"num_workers": 2}')
    status, _told, errors = judge(capsys, "a.json", "b.json")
    assert (status, errors) == (
        cli.REFUSED,
        [
            "mlhost-limits: workers: a.json:1 says 1 and b.json:1 says 2, and nothing says which"
            " file counts; name one file, or state --workers N"
        ],
    )
    assert judge(capsys, "a.json", "b.json", "--workers", "1")[0] == cli.COMPLIES


def test_what_has_no_safe_default_is_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    status, _told, errors = judge(capsys, "ds.json")
    assert (status, errors) == (
        cli.REFUSED,
        [
            "mlhost-limits: deepspeed.parameters: the number of the model's parameters is not known;"
            " state --parameters, such as 7B"
        ],
    )
    _status, told, _errors = judge(capsys, "ds.json", "--parameters", "1B", "--workers", "0")
    assert "largest_layer 250000000 (assumed: a quarter of them)" in told


def test_all_that_is_wrong_is_told_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "broken.json").write_text('{"a": 1,\n"b"}')
    (here / "run.sh").write_text("\npython t.py --num_workers $N --output_dir ''\n")
    (here / "large.json").write_bytes(b" " * (2**20 + 1))
    os.mkfifo(here / "pipe.json")
    names = ("broken.json", "run.sh", "large.json", "pipe.json", "absent.json", "")
    status, _told, errors = judge(capsys, *names)
    assert status == cli.REFUSED
    assert sorted(line.partition(": ")[2].partition(": ")[0] for line in errors) == [
        *("FILE", "absent.json", "broken.json:2", "large.json", "pipe.json"),
        *("run.sh:2", "run.sh:2"),
    ]


def test_a_number_beyond_the_policy_s_is_told_with_its_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.json").write_text('{\n"num_workers": 9999999}')
    assert judge(capsys, "a.json")[2][0] == (
        "mlhost-limits: training.workers: 9999999 was given; a whole number from 0 to 1000000 is"
        " accepted (a.json:2)"
    )


def test_json_holds_the_run_and_its_origins(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.json").write_text('{"num_workers": 1}')
    assert cli.main(["preflight", "--json", "a.json"]) == cli.COMPLIES
    found = json.loads(capsys.readouterr().out)
    assert (found["run"]["workers"], found["taken"][0]) == (1, "workers 1 (a.json:1)")
    assert "--tensors-per-batch N" in found["asked"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads as somebody else")
def test_root_reads_a_user_s_files_as_that_user(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user's link to what only root may read leads nowhere, named with a user or not."""
    folder = here / "theirs"
    folder.mkdir()
    (here / "secret.json").write_text('{"num_workers": 77}')
    (here / "secret.json").chmod(0o600)
    (folder / "run.json").symlink_to(here / "secret.json")
    for path in (folder, folder / "run.json"):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    for words in (["theirs/run.json", "--as-user", "nobody"], ["theirs/run.json"]):
        status, told, errors = judge(capsys, *words)
        assert (status, told) == (cli.REFUSED, "")
        assert errors == ["mlhost-limits: theirs/run.json: Permission denied"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads as somebody else")
def test_what_a_user_s_file_names_is_read_as_that_user(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it told what root's environment holds."""
    monkeypatch.setenv("KEY_OF_ROOT", "s3cret")
    (here / "secret.json").write_text('{"num_workers": 77}')
    (here / "secret.json").chmod(0o600)
    script = "python t.py --config secret.json --output_dir /srv/$KEY_OF_ROOT\n"
    (here / "run.sh").write_text(script)
    os.chown(here / "run.sh", NOBODY, NOBODY)
    status, told, errors = judge(capsys, "run.sh")
    assert (status, told) == (cli.REFUSED, "")
    assert "s3cret" not in "".join(errors)
    assert any(line.endswith("secret.json: Permission denied") for line in errors)
    assert any("'/srv/$KEY_OF_ROOT' is not known here" in line for line in errors)
    os.chown(here / "run.sh", 0, 0)
    (here / "run.sh").write_text("python t.py --config secret.json")
    assert "workers 77 (secret.json:1)" in judge(capsys, "run.sh")[1]


def test_words_that_take_too_long_end_in_a_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(*_words: object) -> None:
        time.sleep(600)

    monkeypatch.setattr(gather_apart, "gather_words", sleep)
    status, told, errors = judge(capsys, "--time-limit", "1", "--", "python", "t.py")
    assert (status, told, errors) == (
        cli.REFUSED,
        "",
        ["mlhost-limits: what starts the run could not be read: no answer within 1 s"],
    )


ULIMITS = """\
ulimit -Sn 64; ulimit -l unlimited
ulimit -n $MANY
ulimit -u 4
ulimit -Hn 999999999
python t.py --num_workers 9
"""


def test_the_limits_that_a_script_sets_itself_are_judged(here: Path) -> None:
    (here / "run.sh").write_text(ULIMITS)
    done = run_alone("pass", "preflight", "run.sh")
    told = " ".join(done.stdout.split())
    assert (done.returncode, done.stderr) == (cli.FALLS_SHORT, ""), told
    assert "FAIL process:self: nofile soft 64, required" in told
    assert "note ulimit -n 64 (run.sh:1) counts" in told
    assert "note ulimit -n $MANY (run.sh:2) is not known here: run preflight behind it" in told
    assert "note ulimit -u 4 (run.sh:3) is not followed: run preflight behind it" in told
    assert "note ulimit -n 999999999 (run.sh:4) fails here: it is above the hard limit" in told


def run_alone(start: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, behind some Python."""
    program = (
        f"import sys; {start}; from tests.conftest import load_library;"
        "load_library(); from mlhost_limits.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env={"PYTHONPATH": str(TOP)}
    )


def test_yaml_without_its_parser_is_a_sentence(here: Path) -> None:
    (here / "run.yaml").write_text("num_workers: 1\n")
    done = run_alone("sys.modules['yaml'] = None", "preflight", "run.yaml")
    assert done.returncode == cli.REFUSED
    assert "PyYAML is not installed to read YAML" in done.stderr
    assert "Traceback" not in done.stderr


STAGE_3 = {
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu"},
        "offload_param": {"device": "cpu"},
    }
}


@pytest.mark.parametrize(
    ("command", "items"),
    [
        ("trl sft --dataloader_num_workers 1 --output_dir out", {"nofile", "memory", "directory"}),
        ("python t.py --per_device_train_batch_size 1 --output_dir out", {"directory"}),
        ("deepspeed t.py --deepspeed ds.json --model Llama-2-7b", {"model_states"}),
    ],
)
def test_words_alone_choose_what_is_judged(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, items: set[str]
) -> None:
    (here / "ds.json").write_text(json.dumps(STAGE_3))
    cli.main(["preflight", "--json", "--", *command.split()])
    told = json.loads(capsys.readouterr().out)
    assert {finding["item"] for finding in told["findings"]} >= items


def test_a_profile_says_whose_loop_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the words show below that, such as accelerate, says no less."""
    command = "accelerate launch t.py --num_workers 2 --output_dir out"
    cli.main(["preflight", "--json", "--profile", "trl", "--", *command.split()])
    assert "library" not in json.loads(capsys.readouterr().out)["run"]


@pytest.mark.parametrize(
    ("stated", "verdict"),
    [
        ("", "tight"),  # A batch of 64 MiB is assumed.
        ("--batch-size 4MiB", "cannot"),
    ],
)
def test_what_is_assumed_makes_a_no_go_tight(
    here: Path, capsys: pytest.CaptureFixture[str], stated: str, verdict: str
) -> None:
    line = "docker run --shm-size 2m image python t.py --num-workers 4"
    words = [*stated.split(), "--", *line.split()]
    _status, told, _errors = judge(capsys, *words)
    names = {"tight": "tight", "cannot": "cannot run"}
    assert told.endswith(f"no-go: {names[verdict]}: shm_size of new-container:docker")
    assert ("where a batch takes 64.0 MiB, as assumed" in told) == (not stated)
    cli.main(["preflight", "--json", *words])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [one["causes"][0]["verdict"] for one in found if one["status"] == "fail"] == [verdict]


def test_a_policy_may_come_from_a_pipe(here: Path) -> None:
    program = (
        "from tests.conftest import load_library; load_library(); import sys;"
        "from mlhost_limits.cli import main; sys.exit(main(['preflight', '--policy', '-']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        input='{"training": {"workers": 0, "tensors_per_batch": 2}}',
        env={"PYTHONPATH": str(TOP)},
    )
    assert (done.returncode, done.stderr) == (cli.COMPLIES, ""), done.stdout
