# SPDX-License-Identifier: GPL-3.0-or-later
"""Every host of a fleet is there, whatever it returned, and what is not a result never complies."""

from __future__ import annotations

import pytest
from mlhost_limits import fleet as audit
from mlhost_limits.core.finding import FAIL, LATER, PASS, UNKNOWN, WAIVED
from mlhost_limits.fleet import HostResult, find_status, read_host

NOW = "2026-11-30T12:00:00Z"
MET = {"status": "pass", "place": "kernel", "item": "fs.file-max", "bound": "value", "causes": []}


def find(status: str, **more: object) -> dict[str, object]:
    return {**MET, "status": status, **more}


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ([MET], PASS),
        ([MET, find(WAIVED)], WAIVED),
        ([MET, find(PASS, after_boot=FAIL), find(WAIVED)], LATER),
        ([find(UNKNOWN), find(PASS, after_boot=FAIL)], UNKNOWN),
        ([MET, find(FAIL), find(UNKNOWN)], FAIL),
        ([], UNKNOWN),
    ],
)
def test_a_host_is_as_good_as_its_worst_finding(findings: list[object], status: str) -> None:
    host = read_host("a", {"findings": findings}, ("gpu",), NOW)
    assert (host.state, host.status, host.groups) == (audit.CHECKED, status, ("gpu",))


@pytest.mark.parametrize(
    ("result", "state", "reason"),
    [
        (None, audit.MISSING, "no result: the check did not run there"),
        ("so\nso", audit.GARBLED, "'so\\nso' is not a result of the check"),
        ({"unreachable": True, "msg": "no\nroute"}, audit.UNREACHABLE, "no route"),
        ({"unreachable": True}, audit.UNREACHABLE, "cannot be reached"),
        ({"skipped": True}, audit.CRASHED, "no result: the check did not run there"),
        ({"failed": True, "msg": "MODULE FAILURE"}, audit.CRASHED, "MODULE FAILURE"),
        (
            {"msg": "MODULE FAILURE", "module_stderr": "Traceback (most\n  x\nOSError: full\n"},
            audit.CRASHED,
            "MODULE FAILURE: OSError: full",
        ),
        (
            {"msg": "it is full", "exception": "Traceback (most\nis full"},
            audit.CRASHED,
            "it is full",
        ),
        ({"msg": "x", "module_stderr": "Killed\nby it"}, audit.CRASHED, "x: Killed"),
        ({"msg": "x", "exception": ValueError("an object")}, audit.CRASHED, "x"),
        ({"findings": 3}, audit.GARBLED, "its findings are 3; a list is accepted"),
        ({"findings": [MET, 7]}, audit.GARBLED, "finding 2 of 2 has no status: 7"),
        ({"findings": [{}]}, audit.GARBLED, "finding 1 of 1 has no status: {}"),
    ],
)
def test_a_host_without_a_result_says_why(result: object, state: str, reason: str) -> None:
    host = read_host("a", result)
    assert host == HostResult("a", state, reason)
    assert host.status == audit.UNCHECKED


@pytest.mark.parametrize(
    "wrong",
    [
        {"place": 3},
        {"reason": None},
        {"causes": "x"},
        {"causes": ["x"]},
        {"causes": [{"text": 3}]},
        {"causes": [{"text": "a", "at": "b"}]},
        {"causes": [{"text": "a", "remedy": "b"}]},
    ],
)
def test_a_garbled_finding_makes_its_host_garbled(wrong: dict[str, object]) -> None:
    host = read_host("a", {"findings": [find(FAIL, **wrong)]})
    assert host.state == audit.GARBLED
    assert host.reason.startswith("finding 1 of 1 is garbled: {")
    assert len(host.reason) < 340


@pytest.mark.parametrize(
    ("measured", "note"),
    [
        ("", ""),
        ("2026-11-30T11:59:00Z", ""),
        ("2026-11-30T12:00:30Z", ""),
        ("2026-11-30T13:00:00Z", "its clock is ahead: it says 2026-11-30T13:00:00Z"),
        ("yesterday", "its time 'yesterday' is not a time"),
    ],
)
def test_a_clock_that_is_ahead_is_noted(measured: str, note: str) -> None:
    assert read_host("a", {"findings": [MET], "measured": measured}, (), NOW).note == note


def test_what_will_not_last_is_later_only_where_it_passes_now() -> None:
    assert find_status(find(PASS, next_restart=FAIL)) == LATER
    assert find_status(find(FAIL, next_restart=FAIL)) == FAIL
