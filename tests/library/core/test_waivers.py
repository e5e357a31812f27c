# SPDX-License-Identifier: GPL-3.0-or-later
"""A waiver covers what it names until its day is over, and never makes a pass."""

from __future__ import annotations

import datetime

import pytest
from mlhost_limits.core.cause import Outlook
from mlhost_limits.core.finding import (
    FAIL,
    PASS,
    UNKNOWN,
    WAIVED,
    Finding,
    Observation,
    Requirement,
    count_statuses,
    judge,
)
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.core.report import format_report
from mlhost_limits.core.waivers import Waiver, find_idle, read_waivers, waive
from mlhost_limits.schema import load_policy

TODAY = "2026-06-15"
PLACE = "container:docker/legacy-7"
SHORT = judge(Requirement(PLACE, "nofile", "hard", 65536), Observation(1024, "/proc"))
MET = judge(Requirement(PLACE, "nofile", "soft", 1024), Observation(1024, "/proc"))
UNSEEN = judge(Requirement(PLACE, "nofile", "hard", 65536), Observation(None, "", "it is gone"))
LATE = MET._replace(outlook=Outlook(after_boot=FAIL))
COVERS = Waiver("nofile", "container:docker/legacy-*", "vendor image", "2026-12-31")


@pytest.mark.parametrize(
    ("finding", "waiver", "status"),
    [
        (SHORT, COVERS, WAIVED),
        (UNSEEN, COVERS, WAIVED),
        (LATE, COVERS, WAIVED),
        (MET, COVERS, PASS),
        (SHORT, COVERS._replace(what="nofile hard"), WAIVED),
        (SHORT, COVERS._replace(what="nofile soft"), FAIL),
        (SHORT, COVERS._replace(where="session:*"), FAIL),
        (SHORT, COVERS._replace(until=TODAY), WAIVED),
        (SHORT, COVERS._replace(until="2026-06-14"), FAIL),
        (UNSEEN, COVERS._replace(until="2026-06-14"), UNKNOWN),
        (SHORT, COVERS._replace(hosts=("gpu*",)), WAIVED),
        (SHORT, COVERS._replace(hosts=("gpu1.example.org",)), WAIVED),
        (SHORT, COVERS._replace(hosts=("gpu1",)), WAIVED),
        (SHORT, COVERS._replace(hosts=("gpu",)), FAIL),
        (SHORT, COVERS._replace(hosts=("cpu1", "cpu2")), FAIL),
    ],
)
def test_a_waiver_covers_what_it_names(finding: Finding, waiver: Waiver, status: str) -> None:
    (after,) = waive([finding], (waiver,), "gpu1.example.org", TODAY)
    assert after.status == status
    assert after._replace(status=finding.status, waiver="") == finding


def test_the_waiver_that_lasts_longest_is_told() -> None:
    shorter = COVERS._replace(until="2026-07-01", why="another")
    (after,) = waive([SHORT], (shorter, COVERS, shorter), "gpu1", TODAY)
    assert after.waiver == "waived until 2026-12-31: vendor image"
    assert after.as_dict()["waiver"] == after.waiver


def test_one_that_is_over_says_so_and_the_finding_fails_with_all_it_has() -> None:
    after = waive([SHORT, UNSEEN], (COVERS._replace(until="2026-01-31"),), "gpu1", TODAY)
    assert format_report(after) == [
        f"FAIL {PLACE}: nofile hard 1024, required 65536",
        "     note its waiver ended on 2026-01-31: vendor image",
        f"???  {PLACE}: it is gone",
        "     note its waiver ended on 2026-01-31: vendor image",
        "0 pass, 1 fail, 1 unknown",
    ]


def test_what_is_waived_is_shown_without_a_remedy_and_counted_by_itself() -> None:
    after = waive([SHORT, MET], (COVERS,), "gpu1", TODAY)
    assert format_report(after) == [
        f"wvd  {PLACE}: nofile hard 1024, required 65536",
        "     note waived until 2026-12-31: vendor image",
        "1 pass, 0 fail, 0 unknown, 1 waived",
    ]
    assert count_statuses(after)["waived"] == 1
    assert (
        format_report(waive([UNSEEN], (COVERS,), "gpu1", TODAY))[0] == f"wvd  {PLACE}: it is gone"
    )


def test_a_waiver_that_nothing_needs_is_noted() -> None:
    other = COVERS._replace(what="memlock")
    elsewhere = other._replace(hosts=("cpu1",))
    assert list(find_idle([SHORT, MET], [COVERS, other, elsewhere], "gpu1")) == [other]
    assert list(find_idle([MET], [COVERS], "gpu1")) == [COVERS]
    assert list(find_idle([LATE], [COVERS], "gpu1")) == []
    assert format_report([MET], idle=[other])[1:3] == [
        "note nothing needs the waiver of memlock in container:docker/legacy-* (until",
        "     2026-12-31: vendor image)",
    ]


def test_a_waiver_is_read_with_its_day_as_yaml_gives_it() -> None:
    problems: list[str] = []
    raw = [
        {"what": "nofile", "why": "a\nb", "until": datetime.date(2026, 12, 31)},
        {"where": "kernel", "hosts": ["a", "b*"], "why": "c", "until": "2027-01-01"},
    ]
    assert read_waivers(raw, problems) == (
        Waiver("nofile", "*", "a?b", "2026-12-31"),
        Waiver("*", "kernel", "c", "2027-01-01", ("a", "b*")),
    )
    assert not problems


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({}, "waivers[0]: would waive everything; say what or where"),
        ({"what": "a", "until": "2026-12-31"}, "waivers[0].why: '' was given; a text is accepted"),
        ({"what": 3}, "waivers[0].what: 3 was given; a text is accepted"),
        (
            {"until": "soon"},
            "waivers[0].until: 'soon' was given; a day as 2026-12-31 is accepted",
        ),
        ({"hosts": "a"}, "waivers[0].hosts: 'a' was given; a list of names is accepted"),
        ({"hosts": [1]}, "waivers[0].hosts: [1] was given; a list of names is accepted"),
        ({"who": "me"}, "waivers[0].who: is unknown; accepted are what, where, hosts, why, until"),
    ],
)
def test_a_wrong_waiver_is_refused(entry: dict[str, object], told: str) -> None:
    problems: list[str] = []
    read_waivers([entry], problems)
    assert told in problems


def test_waivers_alone_require_nothing_and_are_refused() -> None:
    waivers = [{"what": "nofile", "why": "a", "until": "2026-12-31"}]
    with pytest.raises(PolicyError, match="nothing would be required"):
        load_policy({"waivers": waivers}, "none")
    loaded = load_policy({"waivers": waivers}, "training")
    assert loaded.waivers == (Waiver("nofile", "*", "a", "2026-12-31"),)
