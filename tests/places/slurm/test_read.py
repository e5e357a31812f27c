# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's programs are asked as they are, and a job that is tried leaves nothing, however it ends."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from mlhost_limits.host.look import read_limits
from mlhost_limits.slurm import measure as slurm_job
from mlhost_limits.slurm import read as slurm
from mlhost_limits.slurm.confines import Size
from mlhost_limits.slurm.measure import Node, find_hindrance, find_node, try_job
from mlhost_limits.slurm.read import ask, find_program, read_slurm_files, show_config

ME = pwd.getpwuid(os.getuid()).pw_name
RUNS = """while [ "$1" != /bin/sh ]; do shift; done; SLURM_JOB_ID=7 SLURMD_NODENAME=n1 exec "$@" """


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that holds all of Slurm's programs; there are none yet."""
    monkeypatch.setattr(slurm, "_FOLDERS", (str(tmp_path), "/usr/bin"))
    return tmp_path


def install(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f'#!/bin/sh\necho {name} "$@" >> {folder}/calls\n{script}\n')
    path.chmod(0o755)


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_a_program_that_is_not_there(programs: Path) -> None:
    assert find_program("sinfo") is None
    assert ask("sinfo").errors == "there is no sinfo on this host"
    assert find_node(None) == "sinfo printed nothing"
    assert try_job(ME, {}, "", "").reason == "there is no srun on this host, so no job was tried"


def test_a_program_that_does_not_end(programs: Path) -> None:
    install(programs, "scontrol", "exec sleep 60")
    assert "did not end within" in ask("scontrol", seconds=0.2).errors


def test_what_the_controller_runs_with(programs: Path) -> None:
    install(programs, "scontrol", "echo 'PropagateResourceLimits = ALL'; echo 'UsePam   = No'")
    assert show_config() == {"propagateresourcelimits": "ALL", "usepam": "No"}


def test_a_node_and_its_partitions(programs: Path) -> None:
    install(programs, "sinfo", "echo 'debug*|idle|none'; echo 'long|drained|bad | disk'")
    node = find_node(os.getpid())
    host = os.uname().nodename.partition(".")[0]
    partitions = {"debug": ("idle", "none"), "long": ("drained", "bad | disk")}
    assert node == Node(host, partitions, "debug")
    assert f"-n {host}" in calls(programs)[0]


def test_a_login_host_has_partitions_and_no_node(programs: Path) -> None:
    install(
        programs, "sinfo", "echo 'debug|idle|none'; echo 'debug|down|x'; echo 'long*|idle|none'"
    )
    assert find_node(None) == Node("", {"debug": ("", ""), "long": ("", "")}, "long")


def test_what_sinfo_complains_of(programs: Path) -> None:
    install(programs, "sinfo", "echo 'sinfo: error: one' >&2; echo 'sinfo: error: two' >&2; exit 1")
    assert find_node(None) == "two"


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        ("debug", ""),
        ("busy", ""),
        ("off", "no job was tried: node n1 is drained (bad disk)"),
        ("gone", "no job was tried: node n1 is down*"),
        ("other", "no job was tried in partition other: node n1 is not in it"),
    ],
)
def test_where_no_job_can_be_tried(partition: str, said: str) -> None:
    states = {
        "debug": ("idle", "none"),
        "busy": ("allocated", "none"),
        "off": ("drained", "bad disk"),
        "gone": ("down*", ""),
    }
    assert find_hindrance(Node("n1", states), partition) == said


def test_a_login_host_does_not_know_a_partition() -> None:
    assert find_hindrance(Node("", {}), "x") == "no job was tried in partition x: it is unknown"


@pytest.mark.root
def test_a_job_tells_its_limits_and_is_not_cancelled(programs: Path) -> None:
    install(programs, "srun", RUNS)
    job = try_job(ME, {}, "gpu", "n1")
    assert (job.limits, job.id, job.node) == (read_limits("self"), "7", "n1")
    (call,) = calls(programs)
    assert "--partition=gpu --nodelist=n1 /bin/sh" in call
    assert "--immediate=10" in call


@pytest.mark.root
def test_a_job_waits_for_what_is_done_meanwhile(programs: Path) -> None:
    install(programs, "srun", RUNS)
    seen: list[int] = []
    job = try_job(ME, {}, "", "", None, lambda: seen.append(len(calls(programs))))
    assert (job.limits, job.id, seen) == (read_limits("self"), "7", [1])
    assert "--input=all" in calls(programs)[0]


def test_nothing_is_done_meanwhile_where_no_job_runs(programs: Path) -> None:
    install(programs, "srun", "exit 1")
    install(programs, "scancel", "")
    seen: list[int] = []
    assert try_job(ME, {}, "", "", None, lambda: seen.append(1)).limits is None
    assert seen == []


@pytest.mark.root
def test_a_job_tells_what_confines_it(programs: Path) -> None:
    install(programs, "srun", RUNS)
    job = try_job(ME, {}, "", "", Size(200 * 2**20 + 1, 2))
    assert job.limits == read_limits("self")
    assert job.confines
    assert job.confines.cpus == len(os.sched_getaffinity(0))
    assert job.confines.total > 2**20
    assert "--mem=201M --cpus-per-task=2" in calls(programs)[0]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'srun: error: Requested nodes are busy' >&2; exit 1", "Requested nodes are busy"),
        ("exit 0", "it printed nothing"),
        ("echo mlhost-limits: 7 n1; echo 'Max cpu time  none'", "no row 'Max cpu time'"),
    ],
)
@pytest.mark.root
def test_a_job_that_does_not_run_is_cancelled_by_its_name(
    programs: Path, script: str, reason: str
) -> None:
    install(programs, "srun", script)
    install(programs, "scancel", "")
    job = try_job(ME, {}, "", "")
    assert job.limits is None
    assert job.reason.startswith(f"the job did not run within 10 s: {reason}")
    submitted, canceled = calls(programs)
    (name,) = [word for word in submitted.split() if word.startswith("--job-name=mlhost-limits-")]
    assert canceled == f"scancel --quiet --{name[6:]} --user={ME}"


@pytest.mark.slow
def test_a_job_that_hangs_is_ended_with_all_that_it_started(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_job, "WAIT", 0)
    monkeypatch.setattr(slurm_job, "_SLACK", 2.0)
    monkeypatch.setattr(slurm_job, "_PATIENCE", 0.2)
    install(programs, "srun", f"trap '' TERM; echo $$ > {programs}/pid; while :; do sleep 1; done")
    install(programs, "scancel", "")
    assert "printed nothing within" in try_job(ME, {}, "", "").reason
    assert calls(programs)[1].startswith("scancel ")
    assert not Path(f"/proc/{(programs / 'pid').read_text().strip()}").exists()


def test_a_job_that_cannot_be_submitted(programs: Path) -> None:
    (programs / "srun").write_text("no program")
    (programs / "srun").chmod(0o755)
    install(programs, "scancel", "")
    assert f"no job could be submitted as {ME}" in try_job(ME, {}, "", "").reason


def test_slurm_conf_with_all_that_it_includes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, other = tmp_path / "slurm.conf", tmp_path / "a.conf"
    main.write_text("include a.conf\ninclude gone.conf\n")
    other.write_text("PropagateResourceLimits=NONE\n")
    monkeypatch.setattr(slurm, "_CONFS", (str(main),))
    files = read_slurm_files(None)
    assert (files.path, set(files.texts), files.served) == (
        str(main),
        {str(main), str(other)},
        False,
    )
    assert files.conf.missing == (f"{tmp_path}/gone.conf",)


@pytest.mark.parametrize(
    ("options", "path", "served"),
    [
        ("SLURMD_OPTIONS='-f /etc/other/slurm.conf'", "/etc/other/slurm.conf", False),
        ("SLURMD_OPTIONS='--conf-server ctl:6817'", "/run/slurm/conf/slurm.conf", True),
    ],
)
def test_where_slurmd_finds_its_file(
    options: str, path: str, served: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slurmd").write_text(options)
    monkeypatch.setattr(slurm, "_DEFAULTS", (str(tmp_path / "slurmd"),))
    files = read_slurm_files(None)
    assert (files.path, files.served) == (path, served)
