# SPDX-License-Identifier: GPL-3.0-or-later
"""What confines a job is read from what it prints, and the line that confines it too much is named."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.slurm.confine_causes import (
    Asked,
    Surroundings,
    blame_conf,
    find_confine_causes,
    name_unit,
    predict_memory,
)
from mlhost_limits.slurm.confines import Confines, Level, parse_confines
from mlhost_limits.slurm.slurm_conf import parse_slurm_conf
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_file import Source

MIB = 2**20
CONF = "/etc/slurm/cgroup.conf"
TOP = "/sys/fs/cgroup/system.slice"
JOB = f"{TOP}/host_slurmstepd.scope/job_3"
DROP_IN = "/etc/systemd/system/system.slice.d/50-few.conf"
# As a job printed it on Debian 12, Slurm 22.05, cgroups of version 2.
V2 = f"""Cpus_allowed_list:\t0-1
MemTotal:         996400 kB
memory.max max {JOB}/step_0/user/task_0
cpuset.cpus.effective 0-1 {JOB}/step_0/user/task_0
memory.max 209715200 {JOB}/step_0/user
cpuset.cpus.effective 0-1 {JOB}/step_0/user
memory.max max {TOP}
cpuset.cpus.effective 0-1 {TOP}
"""
V1 = """Cpus_allowed_list:\t0,2-3
memory.limit_in_bytes 9223372036854771712 /sys/fs/cgroup/memory/slurm
memory.limit_in_bytes 104857600 /sys/fs/cgroup/memory/slurm/uid_1000/job_3
"""


def around(
    conf: str = "", units: dict[str, Files] | None = None, served: bool = False
) -> Surroundings:
    return Surroundings(parse_slurm_conf({CONF: conf}, CONF), served, units or {}, 4)


def drop_in(text: str, path: str = DROP_IN) -> Files:
    return Files(Source("/lib/system.slice", ""), (Source(path, text),))


def confine(
    memory: int = UNLIMITED, unit: int = UNLIMITED, cpus: int = 2, above: int = 2
) -> Confines:
    levels = (Level(f"{JOB}/step_0/user", memory), Level(TOP, unit))
    sets = (Level(JOB, min(cpus, above)), Level(TOP, above))
    return Confines(levels, sets, cpus, 1000 * MIB)


def test_what_a_job_prints() -> None:
    user, task = f"{JOB}/step_0/user", f"{JOB}/step_0/user/task_0"
    confines = parse_confines(V2)
    assert confines.memory == confines.memory[:1] == (Level(user, 200 * MIB),)
    assert confines.cpu_levels == (Level(task, 2), Level(user, 2), Level(TOP, 2))
    assert (confines.cpus, confines.total) == (2, 996400 * 1024)
    assert confines.lowest == Level(user, 200 * MIB)
    assert confines.lowest.is_jobs


def test_version_1_and_nothing_at_all() -> None:
    confines = parse_confines(V1)
    (level,) = confines.memory
    assert (level.most, level.is_jobs, confines.cpus, confines.total) == (100 * MIB, True, 3, 0)
    assert parse_confines("") == Confines((), (), 0, 0)
    assert parse_confines("").lowest == Level("", UNLIMITED)


@pytest.mark.parametrize(
    ("value", "most"),
    [
        (str(2**60 - 1), [2**60 - 1]),
        (str(2**60), []),
        (str(2**63 - 4096), []),
        ("9" * 5000, []),
        ("max", []),
    ],
)
def test_a_bound_without_an_end_bounds_nothing(value: str, most: list[int]) -> None:
    """Version 1 has the largest number of pages for it, and 4 KiB or 64 KiB are a page."""
    confines = parse_confines(f"memory.max {value} {JOB}\n")
    assert [level.most for level in confines.memory] == most


@pytest.mark.parametrize(
    ("path", "unit"),
    [(TOP, "system.slice"), ("/x/slurmd.service", "slurmd.service"), ("/x/job_3", "")],
)
def test_a_cgroup_of_systemd_has_the_name_of_its_unit(path: str, unit: str) -> None:
    assert name_unit(Level(path, 1)) == unit


@pytest.mark.parametrize(
    ("text", "total", "given"),
    [
        ("", 1000, 200),
        ("", 100, 100),
        ("", 0, 200),
        ("AllowedRAMSpace=50", 1000, 100),
        ("AllowedRAMSpace=50", 0, 100),
        ("MaxRAMPercent=10", 1000, 100),
        ("AllowedRAMSpace=1", 1000, 30),
        ("AllowedRAMSpace=1\nMinRAMSpace=64", 1000, 64),
        ("AllowedRAMSpace=much", 1000, 200),
        ("AllowedRAMSpace=150", 1000, 300),
    ],
)
def test_what_cgroup_conf_leaves_a_job(text: str, total: int, given: int) -> None:
    assert predict_memory(200 * MIB, around(text).conf, total * MIB) == given * MIB


@pytest.mark.parametrize(
    ("text", "has", "codes", "line"),
    [
        ("AllowedRAMSpace=50", 100, ["slurm-cgroup-conf"], 1),
        ("\nMaxRAMPercent=10", 100, ["slurm-cgroup-conf"], 2),
        ("AllowedRAMSpace=50\nMaxRAMPercent=10", 100, ["slurm-cgroup-conf"] * 2, 1),
        ("AllowedRAMSpace=100\nMaxRAMPercent=10", 100, ["slurm-cgroup-conf"], 2),
        ("AllowedRAMSpace=50\nMaxRAMPercent=20", 100, ["slurm-cgroup-conf"], 1),
        ("ConstrainRAMSpace=yes", 100, ["slurm-cgroup-not-read"], 0),
        ("AllowedRAMSpace=10\nMinRAMSpace=300", 100, ["slurm-cgroup-not-read"], 0),
        ("AllowedRAMSpace=50", 200, [], 0),
    ],
)
def test_a_job_with_less_memory_than_it_asks_for(
    text: str, has: int, codes: list[str], line: int
) -> None:
    causes = find_confine_causes(Asked("memory", 200 * MIB), confine(has * MIB), around(text))
    assert [cause.code for cause in causes] == codes
    if causes:
        assert (causes[0].at.line if causes[0].at else 0) == line
        assert causes[0].remedy.commands[-1] == ("scontrol", "reconfigure")


def test_of_what_a_line_leaves_so_much() -> None:
    text = "AllowedRAMSpace=50\nMaxRAMPercent=10.5"
    first, second = blame_conf(200 * MIB, 1000 * MIB, around(text))
    assert first.text.endswith('"AllowedRAMSpace=50" leaves a job 50 % of what it asks for')
    assert second.text.endswith("leaves a job 10.5 % of the host's 1000MiB")
    assert "AllowedRAMSpace=100" in first.remedy.text
    assert "MaxRAMPercent=100" in second.remedy.text


def test_of_memory_no_unit_is_blamed_that_is_not_above() -> None:
    files = drop_in("[Slice]\nMemoryMax=180M\n", "/etc/a.conf")
    around_it = around(units={"other.slice": files})
    assert find_confine_causes(Asked("memory", 200 * MIB), confine(unit=180 * MIB), around_it) == ()


def test_of_cpus_the_unit_above_is_blamed_alone() -> None:
    few = drop_in("[Slice]\nAllowedCPUs=0\n")
    files = {"system.slice": few, "other.slice": few}
    (cause,) = find_confine_causes(Asked("cpus", 2), confine(cpus=1, above=1), around(units=files))
    assert "in system.slice" in cause.text


def test_a_file_that_the_controller_hands_out_is_changed_there() -> None:
    (cause,) = blame_conf(200 * MIB, 0, around("AllowedRAMSpace=50", served=True))
    assert cause.remedy.commands == ()


@pytest.mark.parametrize(
    ("asked", "confines", "text", "states"),
    [
        (
            Asked("memory", 200 * MIB),
            confine(unit=180 * MIB),
            "MemoryMax=180M",
            "MemoryMax=infinity",
        ),
        (Asked("cpus", 2), confine(cpus=1, above=1), "AllowedCPUs=0", "AllowedCPUs=0-3"),
    ],
)
def test_a_unit_above_that_bounds_jobs(
    asked: Asked, confines: Confines, text: str, states: str
) -> None:
    files = drop_in(f"[Slice]\nTasksMax=9\n{text}\n[Install]\n{text}\n")
    (cause,) = find_confine_causes(asked, confines, around(units={"system.slice": files}))
    assert cause.at
    assert (cause.at.path, cause.at.line, cause.at.text) == (DROP_IN, 3, text)
    assert states in cause.remedy.text
    assert cause.remedy.commands[-1] == ("systemctl", "daemon-reload")


def test_slurmd_may_run_on_few_cpus_and_its_jobs_with_it() -> None:
    files = Files(None, (Source("/etc/a.conf", "[Service]\nCPUAffinity=0"),))
    found = around(units={"slurmd.service": files})
    (cause,) = find_confine_causes(Asked("cpus", 2), confine(cpus=1), found)
    assert cause.text.endswith("bounds the CPUs of jobs in slurmd.service")
    assert cause.remedy.commands[-1] == ("systemctl", "restart", "slurmd.service")


def test_a_unit_whose_files_say_nothing_is_not_blamed() -> None:
    short = confine(unit=180 * MIB)
    for units in ({}, {"system.slice": drop_in("")}):
        assert find_confine_causes(Asked("memory", 200 * MIB), short, around(units=units)) == ()


@pytest.mark.parametrize(("asked", "blamed"), [(30, []), (31, ["AllowedRAMSpace=50"])])
def test_what_a_job_gets_at_least_is_enough_for_one_that_asks_no_more(
    asked: int, blamed: list[str]
) -> None:
    """MinRAMSpace is 30 MiB where no line states it."""
    causes = blame_conf(asked * MIB, 1000 * MIB, around("AllowedRAMSpace=50"))
    assert [one.at.text for one in causes if one.at] == blamed
