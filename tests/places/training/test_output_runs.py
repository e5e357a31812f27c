# SPDX-License-Identifier: GPL-3.0-or-later
"""Another run is told from the one that asks, and from those who only look on."""

from __future__ import annotations

import pytest
from mlhost_limits.training.output_runs import Process, Run, find_runs, judge_runs

TRAIN = ("python", "train.py", "--output_dir=/out")
FAMILY = {
    10: Process(1, "sshd"),
    20: Process(10, "bash", ("-bash",), "/out"),
    30: Process(20, "torchrun", ("torchrun", "train.py", "--output_dir", "/out"), "/out"),
    40: Process(30, "python3.11", TRAIN, "/out"),
    41: Process(30, "python3.11", TRAIN, "/out"),  # A rank beside ours.
    50: Process(40, "python3.11", TRAIN, "/out"),  # A worker of ours.
}


def find(pid: int, process: Process, writers: dict[int, str] | None = None) -> list[Run]:
    return list(find_runs("/out", {**FAMILY, pid: process}, writers or {}, 40))


def test_who_may_not_write_there_is_no_run_whatever_it_is_called() -> None:
    words = ("python3", "train.py", "/out/x")
    family = {**FAMILY, 90: Process(1, "python3", words, "/out", "mallory")}
    assert [run.user for run in find_runs("/out", family, {}, 40)] == ["mallory"]
    assert not list(find_runs("/out", family, {}, 40, lambda user: user != "mallory"))
    assert list(find_runs("/out", family, {90: "/out/x"}, 40, lambda _user: False))


def test_the_run_that_asks_is_no_other_run() -> None:
    assert not list(find_runs("/out", FAMILY, {40: "/out/log", 41: "/out/log", 50: "/out/x"}, 40))


@pytest.mark.parametrize(
    ("process", "how"),
    [
        (Process(1, "python3", TRAIN), "names it on its command line"),
        (Process(1, "python3", ("python", "t.py", "/out/run-1")), "names it on its command line"),
        (Process(20, "python3", TRAIN), "names it on its command line"),  # Of the same shell.
        (Process(1, "pt_main_thread", (), "/out/"), "works in /out/"),
        (Process(1, "python", (), "/out/run"), "works in /out/run"),
        (Process(1, "python", ("python", "/outside/x"), "/outside"), ""),
        (Process(1, "bash", ("bash",), "/out"), ""),
        (Process(1, "a.out", ("a.out", "python3"), "/out"), ""),
        (Process(1, "python3", ("python3", "-m", "train", "tensorboard"), "/out"), "works in /out"),
        (Process(1, "python3", ("python3", "-u", "t.py", "tensorboard"), "/out"), "works in /out"),
        (Process(1, "vim", ("vim", "/out/log")), ""),
        (Process(1, "python3", ("python3", "/usr/bin/tensorboard", "--logdir", "/out")), ""),
        (Process(1, "python3", ("python3", "-m", "http.server"), "/out"), ""),
        (Process(1, "python3", ("python3", "-u", "-m", "http.server", "-d", "/out")), ""),
        (Process(1, "python3", ("python3", "-X", "dev", "/bin/uvicorn", "app", "/out")), ""),
        (
            Process(1, "python3", ("python3", "http_train.py", "/out")),
            "names it on its command line",
        ),
        (Process(1, "python3", ("python3", "-c", "flask", "/out")), "names it on its command line"),
        (Process(1, "python3", ("python3", "-m", "mlhost_limits.cli", "--output-dir=/out")), ""),
    ],
)
def test_a_process_that_trains_there_is_another_run(process: Process, how: str) -> None:
    assert find(99, process) == ([Run(99, process.name, how)] if how else [])


@pytest.mark.parametrize(
    ("process", "written", "is_run"),
    [
        (Process(1, "rsync"), "checkpoint-7/model.safetensors", True),
        (Process(1, "cp"), "tmp-checkpoint-7/optimizer.pt", True),
        (Process(1, "a.out"), "trainer_state.json", True),
        (Process(1, "a.out"), "run/trainer_state.json.tmp", True),
        (Process(1, "a.out"), "global_step7/mp_rank_00_model_states.pt", True),
        (Process(1, "llamafactory-cl", ("/usr/bin/python3", "/usr/bin/llamafactory-cli")), "log", True),
        (Process(1, "python3", ("python3", "train.py")), "log", True),
        (Process(1, "python3", ("python3", "-m", "ipykernel_launcher")), "log", False),
        (Process(1, "python3", ("python3", "-m", "ipykernel_launcher")), "checkpoint-7/x", True),
        (Process(1, "tee", ("tee", "/out/log")), "log", False),
        (Process(1, "sleep", ("sleep", "9")), "log", False),
        (Process(1, "vim", ("vim", "notes")), ".notes.swp", False),
        (Process(1, "nginx", ("nginx: worker process",)), "access.log", False),
        (Process(1, "tensorboard", ("python3", "/usr/bin/tensorboard")), "log", False),
    ],
)  # fmt: skip
def test_who_writes_a_checkpoint_or_trains_is_another_run(
    process: Process, written: str, is_run: bool
) -> None:
    found = find(99, process, {99: f"/out/{written}"})
    assert found == ([Run(99, process.name, f"writes /out/{written}")] if is_run else [])


def test_the_rest_of_the_pipeline_is_no_run_unless_it_saves() -> None:
    mine = {**FAMILY, 40: FAMILY[40]._replace(group=40)}
    tee = Process(20, "python3", ("python3", "stamp.py"), "/out", group=40)
    assert not list(find_runs("/out", {**mine, 99: tee}, {99: "/out/log"}, 40))
    assert list(find_runs("/out", {**mine, 99: tee}, {99: "/out/checkpoint-1/x"}, 40))
    assert list(find_runs("/out", {**mine, 99: tee._replace(group=41)}, {99: "/out/log"}, 40))


def test_parents_that_form_a_circle_end() -> None:
    circle = {98: Process(99, "a"), 99: Process(98, "b")}
    assert not list(find_runs("/out", circle, {}, 40))


def test_runs_are_named_and_counted() -> None:
    runs = [Run(number, "python", "works in /out") for number in range(2, 9)]
    finding = judge_runs("/out", runs, True)
    assert finding.status == "fail"
    assert finding.observation.value == "pid 2, 3, 4, 5, 6, and 2 more"
    assert finding.causes[0].text.startswith("python (pid 2) works in /out, python (pid 3)")
    assert judge_runs("/out", runs[:1], False).observation.value == "pid 2"
    assert judge_runs("/out", runs[:5], True).observation.value == "pid 2, 3, 4, 5, 6"


def test_without_any_it_passes_where_all_would_have_been_seen() -> None:
    assert judge_runs("/out", [], True).status == "pass"
    assert judge_runs("/out", [], False).status == "unknown"


@pytest.mark.parametrize(
    ("words", "how"),
    [
        (("python3", "-W", "ignore", "/bin/uvicorn", "/out"), ""),
        (("python3", "-W", "flask", "t.py", "/out"), "names it on its command line"),
        (("python3", "-X", "flask", "-u", "t.py", "/out"), "names it on its command line"),
        (("python3", "-m", "train", "--o=/out/"), "names it on its command line"),
        (("python3", "-m", "train", "--o=/output"), ""),
        (("python3",), ""),
        (("python3", "-u"), ""),
    ],
)
def test_what_python_runs_is_read_behind_its_options(words: tuple[str, ...], how: str) -> None:
    assert find(99, Process(1, "python3", words)) == ([Run(99, "python3", how)] if how else [])


@pytest.mark.parametrize(
    ("parent", "beside"),
    [  # What started the run, and whether another that it started is another run.
        ("bash", True),
        ("sshd", True),
        ("torchrun", False),
        ("accelerate", False),
    ],
)
def test_a_shell_starts_runs_of_their_own(parent: str, beside: bool) -> None:
    family = {
        5: Process(1, parent),
        40: Process(5, "python3", TRAIN),
        41: Process(5, "python3", TRAIN),
        42: Process(40, "python3", TRAIN),
    }
    assert [run.pid for run in find_runs("/out", family, {}, 40)] == ([41] if beside else [])


def test_a_run_that_init_started_is_beside_the_others() -> None:
    family = {
        1: Process(0, "init"),
        40: Process(1, "python3", TRAIN),
        41: Process(1, "python3", TRAIN),
        43: Process(2, "python3", TRAIN),
    }
    assert [run.pid for run in find_runs("/out", family, {}, 40)] == [41, 43]
    assert [run.pid for run in find_runs("/out", family, {}, 99)] == [40, 41, 43]


def test_whose_runs_they_are_is_said() -> None:
    runs = [Run(2, "python", "works in /out"), Run(3, "python", "works in /out")]
    assert judge_runs("/out", runs, True, "slurm").owner == "slurm"
    cause = judge_runs("/out", runs * 3, True).causes[0]
    assert cause.text.endswith("python (pid 2) works in /out, and 1 more")
    text = judge_runs("/out", runs, True).causes[0].text
    assert text == "python (pid 2) works in /out, python (pid 3) works in /out"


@pytest.mark.parametrize(("pid", "runs"), [(1, [1]), (2, []), (3, [])])
def test_what_a_run_descends_from_belongs_to_it_but_for_process_1(
    pid: int, runs: list[int]
) -> None:
    me = Process(pid, "python3", ("python3", "train.py"), "/out")
    processes = {pid: Process(0, "python3", ("python3", "main.py"), "/out"), 7: me}
    assert [run.pid for run in find_runs("/out", processes, {}, 7)] == runs
