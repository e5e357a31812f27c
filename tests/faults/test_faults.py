# SPDX-License-Identifier: GPL-3.0-or-later
"""A share of the faults, one of each kind: each is named by its line, and its remedy works.

`make faults` makes all of them; here are a few, and what the judging itself must not let pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from tests.host.snapshot import Snapshot

from .base import saved_host
from .codes import count_codes, find_broken_words, find_codes, find_unexcused, read_sections
from .every import FAULTS, choose_pairs, faults_by_name
from .fault import Culprit, Fault, are_compatible
from .judge import find_misses, find_named, is_green
from .paste import choose, read_script, try_pasting
from .quiet import PROVISIONED, try_quiet
from .trial import try_fault, try_pair

SHARE = (
    "limits: a user's line beats the wildcard",
    "limits: the wildcard does not mean root",
    "pam: pam_limits is commented out (cron)",
    "kernel: a later file in /etc",
    "unit: a value with a suffix",
    "docker: a low soft limit",
)
PAIRS = (
    ("limits: a user's line beats the wildcard", "limits: a hard line that clamps the soft one"),
    ("pam: pam_limits is commented out (cron)", "kernel: a later file in /run"),
)
TRIPLE = (
    "limits: a user's line beats the wildcard",
    "kernel: a later file in /etc",
    "unit: more files than fs.nr_open",
)
BY_NAME = faults_by_name(FAULTS)


@pytest.fixture(scope="module")
def saved() -> Iterator[Snapshot]:
    with saved_host() as host:
        yield host


@pytest.mark.host
@pytest.mark.parametrize("name", SHARE)
def test_a_fault_is_named_and_mended(saved: Snapshot, name: str) -> None:
    result = try_fault(saved, BY_NAME[name])
    assert (result.named, result.remedied) == (True, True), "\n".join(result.wrong + result.report)


@pytest.mark.host
@pytest.mark.parametrize("names", PAIRS, ids=" + ".join)
def test_of_two_faults_both_are_named(saved: Snapshot, names: tuple[str, str]) -> None:
    result = try_pair(saved, [BY_NAME[name] for name in names])
    assert result.named, "\n".join(result.wrong + result.report)


@pytest.mark.host
def test_all_that_is_printed_of_three_faults_is_one_plan(saved: Snapshot) -> None:
    result = try_pasting(saved, [BY_NAME[name] for name in TRIPLE])
    assert (result.green, result.wrong) == (True, ()), "\n".join(result.scripts)


def test_what_is_pasted_is_what_stands_behind_run() -> None:
    report = [
        "FAIL session:alice@sshd: nofile 1024, required 65536",
        "     why  a line beats it",
        "     fix  comment it out",
        "     run  sed -i '1s/^/# /' \\",
        "            /etc/x",
        "          sysctl -w fs.nr_open=5",
        "     then log in again",
        "          and again",
        "FAIL kernel: x",
        "     run  true",
    ]
    script = "sed -i '1s/^/# /' \\\n  /etc/x\nsysctl -w fs.nr_open=5\ntrue\n"
    assert read_script(report) == script


def test_sets_of_faults_leave_each_other_alone() -> None:
    sets = list(choose(3, 20, 7))
    assert sets == list(choose(3, 20, 7))
    assert all(are_compatible(*pair) for one in sets for pair in combinations(one, 2))


@pytest.mark.host
def test_a_host_that_meets_its_policy_is_given_no_cause(saved: Snapshot) -> None:
    assert [result.alarms for result in try_quiet(saved, PROVISIONED)] == [()]


FILE = "/etc/security/limits.d/10-site.conf"
LINE = Culprit(FILE, "alice soft nofile 1024", "user")
FAULT = Fault("a line", "true", (LINE,), ("^session:alice@sshd nofile",))
NUMBERS = {LINE: 2}


def finding(status: str = "fail", **cause: Any) -> dict[str, Any]:
    """Return what a check says of one limit, with one cause of these facts."""
    named = {"code": "pam-user-line", "text": "a user's line beats it", "at": None, **cause}
    return {
        "status": status,
        "place": "session:alice@sshd",
        "item": "nofile",
        "bound": "soft",
        "causes": [named] if cause else [],
        "next_session": "",
        "next_restart": "",
        "after_boot": "",
    }


def at(file: str, line: int) -> dict[str, object]:
    return {"file": file, "line": line, "text": "alice soft nofile 1024"}


def test_the_right_line_is_named() -> None:
    assert list(find_misses(FAULT, NUMBERS, [finding(at=at(FILE, 2))])) == []
    assert find_named([FAULT], NUMBERS, [finding(at=at(FILE, 2))]) == {"a line"}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param([], id="it does not show"),
        pytest.param([finding("pass", at=at(FILE, 2))], id="all passes"),
        pytest.param([finding()], id="no cause"),
        pytest.param([finding(text="a user's line")], id="no line"),
        pytest.param([finding(at=at(FILE, 3))], id="another line"),
        pytest.param([finding(at=at(f"{FILE}.bak", 2))], id="another file"),
        pytest.param([finding(at=at(FILE, 2), code="x", text="it is late")], id="another reason"),
        pytest.param(
            [finding(at=at(FILE, 2)), finding(at=at("/etc/shells", 1))], id="a stranger beside it"
        ),
    ],
)
def test_whatever_else_is_no_naming(found: list[dict[str, Any]]) -> None:
    assert list(find_misses(FAULT, NUMBERS, found))
    assert not is_green(found) or found in ([], [finding("pass", at=at(FILE, 2))])


def test_what_passes_now_and_not_after_a_boot_is_not_green() -> None:
    late = {**finding("pass", at=at(FILE, 2)), "after_boot": "fail"}
    assert not is_green([late])
    assert list(find_misses(FAULT, NUMBERS, [late])) == []


def test_there_are_enough_faults_and_pairs() -> None:
    pairs = choose_pairs()
    assert len(FAULTS) >= 55
    assert len({frozenset(fault.name for fault in pair) for pair in pairs}) >= 100
    assert all(are_compatible(*pair) for pair in pairs)
    assert [[fault.name for fault in pair] for pair in pairs] == [
        [fault.name for fault in pair] for pair in choose_pairs()
    ]


def test_codes_are_counted_and_the_docs_are_held_to_their_word() -> None:
    sections = read_sections()
    every = {section.code for section in sections}
    first, last = sections[0], sections[-1]
    assert count_codes(every)["codes_never_shown"] == []
    assert count_codes(every - {last.code})["codes_shown"] == len(every) - 1
    assert find_unexcused([last.code]) == ([] if last.excused else [last.code])
    name = first.faults[0]
    assert find_broken_words({name: every, "limits: another": ()}) == []
    assert f"{first.code} by {name}" in find_broken_words({name: ()})
    assert find_codes([finding(code="x-y"), finding(code="x-z"), finding()]) == {"x-y", "x-z"}
