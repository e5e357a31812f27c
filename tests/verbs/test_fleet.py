# SPDX-License-Identifier: GPL-3.0-or-later
"""Every host of a fleet is there, whatever it returned, and what is not a result never complies."""

from __future__ import annotations

import json
import math

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
        ({"findings": 3}, audit.GARBLED, "findings: is 3; a list is accepted"),
        ({"findings": [MET, 7]}, audit.GARBLED, "findings[2]: is 7; a mapping is accepted"),
        ({"findings": [{}]}, audit.GARBLED, "findings[1].status: is missing"),
    ],
)
def test_a_host_without_a_result_says_why(result: object, state: str, reason: str) -> None:
    host = read_host("a", result)
    assert host == HostResult("a", state, reason)
    assert host.status == audit.UNCHECKED


TEXTS = ("place", "item", "bound", "required", "how", "reason", "waiver", "owner")
AHEAD = ("next_session", "next_restart", "after_boot")
OF_CAUSE = ("code", "text", "writer", "verdict", "at", "shadows", "remedy")
NUMBER, COMMANDS = "a whole number or null", "a list of commands"
DEEP: object = json.loads("[" * 20 + "]" * 20)
INSIDE = [
    ({"file": 1}, {}, "at.file: is 1; a text is accepted"),
    ({"line": True}, {}, f"at.line: is True; {NUMBER} is accepted"),
    ({"line": [1]}, {}, f"at.line: is [1]; {NUMBER} is accepted"),
    ({"text": ["x"]}, {}, "at.text: is ['x']; a text is accepted"),
    ({}, {"text": None}, "remedy.text: is None; a text is accepted"),
    ({}, {"then": []}, "remedy.then: is []; a text is accepted"),
    ({}, {"commands": "x"}, f"remedy.commands: is 'x'; {COMMANDS} is accepted"),
    ({}, {"commands": [["a", 1]]}, "remedy.commands[1][2]: is 1; a text is accepted"),
]


@pytest.mark.parametrize("value", [True, 7, 1.5, ["x"], {"a": 1}, [None], math.nan])
@pytest.mark.parametrize("key", ["status", *TEXTS, *AHEAD, "observed", "causes"])
def test_a_value_of_another_type_makes_its_host_garbled(key: str, value: object) -> None:
    host = read_host("a", {"findings": [MET, {**MET, "causes": [], key: value}]})
    assert (host.state, len(host.reason) < 340) == (audit.GARBLED, True)
    assert host.reason.startswith(f"findings[2].{key}")
    assert " accepted" in host.reason or "is missing" in host.reason


@pytest.mark.parametrize("value", [True, 7, 1.5, "x", ["x"], {"text": 1, "file": 1}])
@pytest.mark.parametrize("key", OF_CAUSE)
def test_so_does_one_of_a_cause(key: str, value: object) -> None:
    if isinstance(value, str) and key in ("code", "text", "writer", "verdict"):
        value = None
    host = read_host("a", {"findings": [find(FAIL, causes=[{"text": "t", key: value}])]})
    assert host.reason.startswith(f"findings[1].causes[1].{key}")


@pytest.mark.parametrize(("at", "remedy", "told"), INSIDE)
def test_and_one_of_its_line_or_remedy(at: object, remedy: object, told: str) -> None:
    cause = {"text": "t", "at": at, "remedy": remedy}
    host = read_host("a", {"findings": [find(FAIL, causes=[cause])]})
    assert host.reason == f"findings[1].causes[1].{told}"


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ({"a": [1, None, "x", True]}, audit.CHECKED),
        ({"a": [math.inf]}, audit.GARBLED),
        (DEEP, audit.GARBLED),
    ],
)
def test_what_nothing_reads_may_be_what_json_and_a_report_can_hold(
    value: object, state: str
) -> None:
    assert read_host("a", {"findings": [find(FAIL, later_key=value)]}).state == state


@pytest.mark.parametrize(
    ("measured", "note"),
    [
        ("", "it does not say when it was measured"),
        (None, "it does not say when it was measured"),
        ("2026-11-30T11:59:00.5+00:00", ""),
        ("2026-11-30T11:59:00Z", ""),
        ("2026-11-30T12:00:30Z", ""),
        ("2026-11-30T13:00:00Z", "its clock is ahead: it says 2026-11-30T13:00:00Z"),
        ("yesterday", "its time 'yesterday' is not a time"),
    ],
)
def test_a_clock_that_is_ahead_is_noted(measured: object, note: str) -> None:
    assert read_host("a", {"findings": [MET], "measured": measured}, (), NOW).note == note


def test_what_will_not_last_is_later_only_where_it_passes_now() -> None:
    assert find_status(find(PASS, next_restart=FAIL)) == LATER
    assert find_status(find(FAIL, next_restart=FAIL)) == FAIL
