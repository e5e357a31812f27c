# SPDX-License-Identifier: GPL-3.0-or-later
"""What a look at a node found is in its metrics: each requirement once, with one state."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from mlhost_limits.core.cause import Cause, Outlook, Remedy
from mlhost_limits.core.finding import (
    FAIL,
    LATER,
    PASS,
    UNKNOWN,
    WAIVED,
    Finding,
    Observation,
    Requirement,
)
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.node.load import MOST_GROUPS, Load, group_loads
from mlhost_limits.node.metrics import STATES, Files, Run, describe_node, format_metrics

RUN = Run(1700000000.5, 2.0, 0.5, True)
KERNEL = Requirement("kernel", "vm.max_map_count", "value", 65530)
HEAVY = Load(7, 'py"3', 1000, "0::/system.slice/x.service", 9, 10, 4096, 8192, UNLIMITED)


def find(status: str, requirement: Requirement = KERNEL, **more: object) -> Finding:
    return Finding(status, requirement, Observation(1, "x"))._replace(**more)


def describe(
    findings: Sequence[Finding] = (),
    loads: Sequence[Load] = (),
    files: Files | None = None,
    run: Run = RUN,
) -> list[str]:
    metrics = describe_node(findings, group_loads(loads), files, run, lambda uid: f"u{uid}")
    text = format_metrics(metrics)
    return [line.replace("mlhost_limits_", "") for line in text.splitlines() if line[0] != "#"]


def find_states(findings: list[Finding]) -> list[str]:
    lines = [line for line in describe(findings) if line.startswith("requirement_state")]
    assert len(lines) % len(STATES) == 0
    return [line.split('state="')[1].split('"')[0] for line in lines if line.endswith(" 1")]


@pytest.mark.parametrize("status", [PASS, FAIL, UNKNOWN, WAIVED])
def test_a_requirement_is_in_one_state(status: str) -> None:
    assert find_states([find(status)]) == [status]


def test_what_will_not_last_is_a_state_of_its_own() -> None:
    assert find_states([find(PASS, outlook=Outlook("", "", FAIL))]) == [LATER]


@pytest.mark.parametrize(
    ("statuses", "told"),
    [([PASS, FAIL], FAIL), ([FAIL, UNKNOWN], FAIL), ([UNKNOWN, PASS], UNKNOWN), ([WAIVED], WAIVED)],
)
def test_of_two_that_bear_one_name_the_worse_is_told(statuses: list[str], told: str) -> None:
    findings = [find(status) for status in statuses]
    assert find_states(findings) == [told]
    assert f'requirements{{state="{told}"}} 1' in describe(findings)


def test_what_users_decide_is_told_and_counted_apart() -> None:
    told = describe([find(FAIL), find(FAIL, owner="bob"), find(PASS, owner='a"l')])
    where = 'place="kernel",item="vm.max_map_count",bound="value"'
    assert f'requirement_state{{{where},state="fail"}} 1' in told
    assert f'requirement_state{{{where},owner="bob",state="fail"}} 1' in told
    assert f'requirement_state{{{where},owner="a\\"l",state="pass"}} 1' in told
    assert 'requirements{state="fail"} 1' in told
    assert 'requirements{state="pass"} 0' in told
    assert 'user_requirements{state="fail"} 1' in told


def test_the_code_of_a_cause_is_told_once() -> None:
    causes = (Cause("sysctl-not-stated", "text", Remedy("fix")),) * 2
    labels = 'place="kernel",item="vm.max_map_count",bound="value",code="sysctl-not-stated"'
    told = describe([find(FAIL, causes=causes)])
    assert [line for line in told if "cause" in line] == [f"requirement_cause_info{{{labels}}} 1"]


def test_the_worst_process_is_told_with_its_limits() -> None:
    told = describe(loads=[HEAVY, HEAVY._replace(open_files=None, pid=8)])
    where = 'user="u1000",unit="x.service"'
    assert f"worst_process_open_fds{{{where}}} 9" in told
    assert f"worst_process_max_fds{{{where}}} 10" in told
    assert f'worst_process_info{{{where},process="py\\"3",pid="7"}} 1' in told
    assert f"locked_memory_bytes{{{where}}} 8192" in told
    assert f"pinned_memory_bytes{{{where}}} 16384" in told
    assert f"worst_process_locked_memory_bytes{{{where}}} 8192" in told
    assert f"worst_process_locked_memory_limit_bytes{{{where}}} +Inf" in told
    assert "processes 2" in told


def test_where_nothing_is_locked_nothing_is_said_of_it() -> None:
    told = describe(loads=[HEAVY._replace(locked=0, pinned=0, open_files=None)])
    assert not [line for line in told if "memory" in line or "fds" in line]


@pytest.mark.parametrize(("locked", "pinned"), [(5, 0), (0, 5)])
def test_either_of_locked_and_pinned_memory_is_told(locked: int, pinned: int) -> None:
    told = describe(loads=[HEAVY._replace(locked=locked, pinned=pinned)])
    where = 'user="u1000",unit="x.service"'
    assert f"locked_memory_bytes{{{where}}} {locked}" in told
    assert f"pinned_memory_bytes{{{where}}} {pinned}" in told


def test_a_process_with_nothing_open_has_none_open() -> None:
    told = describe(loads=[HEAVY._replace(open_files=0)])
    assert 'worst_process_open_fds{user="u1000",unit="x.service"} 0' in told


def test_a_host_of_many_units_is_told_in_part() -> None:
    loads = [HEAVY._replace(uid=uid) for uid in range(MOST_GROUPS + 5)]
    told = describe(loads=loads)
    assert sum(line.startswith("worst_process_open_fds") for line in told) == MOST_GROUPS
    assert f"process_groups {MOST_GROUPS + 5}" in told


def test_file_handles_are_told_where_they_are_known() -> None:
    assert "file_handles_max 9" in describe(files=Files(5, 9))
    assert not [line for line in describe() if line.startswith("file_handles")]


@pytest.mark.parametrize(("success", "value"), [(True, 1), (False, 0)])
def test_the_run_is_told(success: bool, value: int) -> None:
    told = describe(run=RUN._replace(success=success))
    assert f"last_run_success {value}" in told
    assert "last_run_timestamp_seconds 1700000000.5" in told
    assert "last_run_duration_seconds 2.0" in told
    assert "last_success_timestamp_seconds 0.0" in told
