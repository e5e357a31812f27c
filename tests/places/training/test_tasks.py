# SPDX-License-Identifier: GPL-3.0-or-later
"""How many tasks a run takes, how many are left, and who is told to allow more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlhost_limits.training import tasks_read
from mlhost_limits.training.cgroup_read import read_task_levels
from mlhost_limits.training.loader import Bound, Plan
from mlhost_limits.training.policy import DeepSpeed, Training
from mlhost_limits.training.tasks import (
    TaskRoom,
    blame_nproc,
    blame_tasks,
    bound_by_tasks,
    count_tasks,
)
from mlhost_limits.training.tasks_read import count_tasks_of, find_lookers, find_task_rooms

V2 = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
PLAN = Plan(7, ())


@pytest.mark.parametrize(
    ("run", "workers", "needed"),
    [
        # Measured with torch 2.13 and two threads: so many are enough, and one less is not.
        (Training(), 4, 18),
        (Training(), 16, 66),
        (Training(start_method="spawn"), 4, 24),
        (Training(sharing="file_system"), 6, 26),
        (Training(loaders=2), 3, 26),
        # By the peak that was seen, 25, which was one too few.
        (Training(start_method="forkserver"), 4, 26),
        (Training(start_method="spawn"), 0, 2),
        (Training(start_method="spawn", ranks_per_node=2, groups=0), 0, 4),
        # Three threads for each group in each rank, and one for the store.
        (Training(ranks_per_node=2), 0, 4 + 7),
        (Training(library="trl"), 0, 4),
        (Training(deepspeed=DeepSpeed(3, 10**9, 10**6, 1)), 0, 3),
        (Training(deepspeed=DeepSpeed(2, 10**9, 10**6, 1)), 0, 2),
        (Training(ranks_per_node=2, groups=3), 0, 4 + 19),
        (Training(ranks_per_node=2, groups=3, backend="nccl"), 0, 4),
    ],
)
def test_how_many_tasks(run: Training, workers: int, needed: int) -> None:
    assert count_tasks(run, workers, 2) == needed


@pytest.mark.parametrize(
    ("run", "workers", "needed"),
    [
        (Training(start_method="spawn"), 3, 14),
        (Training(), 3, 13),
        (Training(start_method="spawn", loaders=2), 5, 42),
        (Training(ranks_per_node=8, groups=0), 4, 136),
    ],
)
def test_how_many_tasks_with_one_thread(run: Training, workers: int, needed: int) -> None:
    assert count_tasks(run, workers, 1) == needed


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("ranks", [1, 8])
@pytest.mark.parametrize("loaders", [1, 2])
def test_the_bound_is_the_last_number_that_fits(method: str, ranks: int, loaders: int) -> None:
    run = Training(start_method=method, ranks_per_node=ranks, loaders=loaders)
    for free in range(0, 300, 7):
        most = bound_by_tasks(run, 2, TaskRoom(free, 999, "kernel.pid_max")).most
        assert most == 0 or count_tasks(run, most, 2) <= free
        assert count_tasks(run, most + 1, 2) > free


def test_a_bound_names_who_states_it() -> None:
    room = TaskRoom(20, 40, "kernel.pid_max")
    assert bound_by_tasks(Training(), 2, room) == Bound("tasks", 4, "20 left of kernel.pid_max")


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("user.slice/user-1000.slice", "systemctl set-property user-1000.slice TasksMax=60"),
        (f"system.slice/docker-{'a' * 64}.scope", f"docker update --pids-limit 60 {'a' * 64}"),
        ("slurm/job_1", ""),
    ],
)
def test_a_cgroup_gets_enough_from_who_made_it(folder: str, command: str) -> None:
    room = TaskRoom(5, 40, f"/sys/fs/cgroup/{folder}/pids.max")
    cause = blame_tasks(Training(workers=9), 25, room, PLAN)
    assert [" ".join(words) for words in cause.remedy.commands] == ([command] if command else [])
    assert "allow 60 tasks there" in cause.remedy.text
    assert "a run with 9 workers takes 25 tasks" in cause.text
    for workers, told in ((1, "a run with 1 worker takes"), (None, "a run with 0 workers takes")):
        cause = blame_tasks(Training(workers=workers), 25, room, PLAN)
        assert cause.text.startswith(told)


def test_what_the_user_runs_already_counts() -> None:
    cause = blame_nproc(Training(workers=9), 25, 30, 40, PLAN)
    assert "has 30 already" in cause.text
    assert "raise nproc to 55" in cause.remedy.text


def test_each_cgroup_above_counts(tmp_path: Path) -> None:
    for folder, most, used in (("a", "100", "30"), ("a/b", "max", "20"), ("a/b/c", "7", "2")):
        place = tmp_path / "sys/fs/cgroup" / folder
        place.mkdir(parents=True)
        (place / "pids.max").write_text(f"{most}\n")
        (place / "pids.current").write_text(f"{used}\n")
    assert read_task_levels("0::/a/b/c\n", V2, str(tmp_path)) == [
        ("/sys/fs/cgroup/a/b/c", 7, 2),
        ("/sys/fs/cgroup/a", 100, 30),
    ]
    assert read_task_levels("", "", str(tmp_path)) is None


def test_threads_of_a_user_are_counted_by_the_real_uid(tmp_path: Path) -> None:
    for pid, uid, threads in ((1, 0, 5), (2, 1000, 3), (3, 1000, 4), (4, 10001, 9)):
        (tmp_path / str(pid)).mkdir()
        text = f"Name:\tx\nUid:\t{uid}\t0\t0\t0\nThreads:\t{threads}\n"
        (tmp_path / str(pid) / "status").write_text(text)
    (tmp_path / "5").mkdir()  # It has ended.
    assert count_tasks_of(1000, str(tmp_path)) == 7


def test_who_looks_does_not_count(tmp_path: Path) -> None:
    for pid, words in ((os.getpid(), "check\0now"), (os.getppid(), "check\0now"), (1, "sh")):
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        (tmp_path / str(pid) / "status").write_text("Uid:\t7\t7\nThreads:\t2\n")
        (tmp_path / str(pid) / "cmdline").write_text(words)
    assert find_lookers(str(tmp_path)) == {os.getpid(), os.getppid()}
    assert count_tasks_of(7, str(tmp_path)) == 2
    (tmp_path / str(os.getppid()) / "cmdline").write_text("bash")
    assert find_lookers(str(tmp_path)) == {os.getpid()}
    assert count_tasks_of(7, str(tmp_path)) == 4


def test_a_host_without_any_bound_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_read, "read_sysctl", lambda _key: None)
    monkeypatch.setattr(tasks_read, "read_task_levels", lambda *_asked: [])
    with pytest.raises(OSError, match="what bounds the tasks of this host cannot be read"):
        find_task_rooms("", "")


def test_who_only_looks_is_gone_when_the_run_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_read, "read_sysctl", lambda _key: None)
    monkeypatch.setattr(tasks_read, "read_task_levels", lambda *_asked: [("/x", 10, 7)])
    assert find_task_rooms("", "", 2) == [TaskRoom(5, 10, "/x/pids.max")]
    assert find_task_rooms("", "") == [TaskRoom(3, 10, "/x/pids.max")]


@pytest.mark.parametrize(
    ("ranks", "told"), [(1, "a run with 9 workers takes"), (2, "2 ranks with 9 workers each take")]
)
def test_the_ranks_of_a_run_are_told(ranks: int, told: str) -> None:
    run = Training(workers=9, ranks_per_node=ranks)
    text = blame_tasks(run, 25, TaskRoom(1, 9, "/x/pids.max"), PLAN).text
    assert text.startswith(f"{told} 25 tasks, threads and all, and /x/pids.max is 9")
