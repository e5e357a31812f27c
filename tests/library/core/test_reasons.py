# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that fall short for one reason are told once, and places are named in words."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Cause, Outlook, Remedy
from mlhost_limits.core.edit import OURS
from mlhost_limits.core.finding import FAIL, LATER, PASS, Finding, Observation, Requirement
from mlhost_limits.core.reasons import (
    _MOST_NAMES,
    Reason,
    find_kind,
    find_reasons,
    find_section,
    join_some,
    name_places,
)
from mlhost_limits.core.values import Declaration

LINE = Declaration("/etc/security/limits.conf", 3, "alice soft nofile 5", 5)
LOW = Cause("pam-stated-too-low", "a line", Remedy("raise it"), LINE)
OTHER = LOW._replace(at=LINE._replace(line=4), remedy=Remedy("raise that"))
SILENT = Cause("pam-not-stated", "no line", Remedy("state it"))


def find(place: str, *causes: Cause, item: str = "nofile", owner: str = "") -> Finding:
    wanted = Requirement(place, item, "soft", 9)
    return Finding(FAIL, wanted, Observation(5, ""))._replace(causes=causes, owner=owner)


def fold(*findings: Finding) -> list[tuple[list[str], list[Cause]]]:
    return [
        ([one.requirement.place for one in reason.findings], list(reason.causes))
        for reason in find_reasons(findings)
    ]


def test_one_line_is_one_reason_whatever_falls_short_by_it() -> None:
    a, b, c = find("session:a@su", LOW), find("job:slurm", LOW, item="core"), find("x", OTHER)
    assert fold(c, a, b) == [(["session:a@su", "job:slurm"], [LOW]), (["x"], [OTHER])]


def test_what_nobody_states_is_one_reason_for_each_item_and_kind_of_place() -> None:
    findings = [
        find("session:a@su", SILENT),
        find("session:b@su", SILENT),
        find("session:b@su", SILENT, item="core"),
        find("container:x", SILENT),
        find("session:c@su", SILENT, owner="c"),
    ]
    assert [len(places) for places, _causes in fold(*findings)] == [2, 1, 1, 1]
    bare = [one._replace(causes=()) for one in findings]
    assert [len(places) for places, _causes in fold(*bare)] == [2, 1, 1, 1]


def test_one_command_is_one_reason() -> None:
    edit = Remedy("edit it", (("sed", "x"),))
    first, second = LOW._replace(remedy=edit), OTHER._replace(remedy=edit)
    assert [places for places, _causes in fold(find("a", first), find("b", second))] == [["a", "b"]]


def test_what_another_reason_has_in_front_is_not_done_twice() -> None:
    both, second = find("a", LOW, OTHER), find("b", OTHER)
    assert fold(both, second) == [(["a"], [LOW]), (["b"], [OTHER])]
    third = find("c", SILENT, OTHER)
    first, last = find_reasons([both, third])
    assert (first.causes, last.causes) == ((LOW, OTHER), (SILENT,))


def test_the_kernel_s_value_comes_before_what_names_it() -> None:
    """Otherwise the reason of the most findings does."""
    kernel = find("kernel", SILENT._replace(code="sysctl-not-stated"), item="fs.nr_open")
    names = LOW._replace(text="above fs.nr_open")
    many = [find("a", names), find("b", names)]
    assert fold(*many, kernel)[0][0] == ["kernel"]
    assert fold(*many[:1], kernel)[0][0] == ["kernel"]
    others = [one._replace(causes=(LOW,)) for one in many]
    assert fold(kernel, *others)[0][0] == ["a", "b"]
    unit = find("service:x", SILENT, item="fs.nr_open")
    assert fold(unit, *many)[0][0] == ["a", "b"]


def test_only_findings_of_that_state_are_folded() -> None:
    late = find("a", LOW)._replace(status=PASS, outlook=Outlook("", "", FAIL))
    assert fold(late) == []
    assert [reason.findings for reason in find_reasons([late, find("b")], LATER)] == [(late,)]


@pytest.mark.parametrize(
    ("causes", "owner", "is_of_one"),
    [
        ((LOW,), "", True),
        ((LOW._replace(at=LINE._replace(text="* soft nofile 5")),), "", False),
        ((LOW._replace(at=LINE._replace(path="/etc/sysctl.conf")),), "", False),
        ((SILENT,), "", False),
        ((), "", False),
        ((), "alice", True),
        ((SILENT,), "alice", True),
    ],
)
def test_a_reason_may_be_of_one_user_alone(
    causes: tuple[Cause, ...], owner: str, is_of_one: bool
) -> None:
    assert Reason((find("session:a@su", *causes, owner=owner),), causes).is_of_one is is_of_one


@pytest.mark.parametrize(
    ("code", "writer", "is_ours"),
    [
        ("pam-stated-too-low", OURS, True),
        ("pam-stated-too-low", "a package", False),
        ("pam-not-stated", OURS, False),
    ],
)
def test_a_wrong_line_of_ours_is_written_anew(code: str, writer: str, is_ours: bool) -> None:
    cause = LOW._replace(code=code, writer=writer)
    assert Reason((find("a", cause),), (cause,)).is_in_our_file is is_ours


def test_a_section_mends_a_reason_alone_or_not_at_all() -> None:
    first = find("a", SILENT)
    assert find_section("shm-not-stated") == "shared_memory"
    assert Reason((first,), (SILENT,)).section == "sessions"
    assert Reason((first,), (SILENT, SILENT._replace(code="pam-soft-alone"))).section == "sessions"
    assert Reason((first,), (SILENT, LOW)).section == ""
    assert Reason((first,)).section == ""


@pytest.mark.parametrize(
    ("place", "kind"), [("session:a:b@su", "session"), ("kernel", "kernel"), ("path:/x", "path")]
)
def test_the_kind_of_a_place(place: str, kind: str) -> None:
    assert find_kind(place) == kind


NAMES = list("abcdefgh")


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, ""),
        (1, "a"),
        (2, "a and b"),
        (3, "a, b and c"),
        (_MOST_NAMES, "a, b, c and d"),
        (_MOST_NAMES + 1, "a, b, c, d and e"),
        (_MOST_NAMES + 2, "a, b, c, d and 2 more"),
    ],
)
def test_some_of_many_are_named(count: int, told: str) -> None:
    """Of one more than are named, the name is as short as the number."""
    assert join_some(NAMES[:count]) == told


EVERY = ["session:root@su", "session:root@sshd", "session:bob@su", "session:bob@sshd"]


@pytest.mark.parametrize(
    ("places", "every", "told"),
    [
        (EVERY, EVERY, "root and everyone, at every login"),
        (EVERY[:3], EVERY, "root, at every login; everyone, at su"),
        (EVERY[:1], EVERY[:1], "root, at su"),
        (["session:a@b@su"], EVERY, "a@b, at su"),
        (["session:root"], EVERY, "root"),
        (["kernel"], [], "kernel"),
        (["service:a", "service:b", "service:a"], [], "service a and b"),
        (["new-container:docker", "path:/x"], [], "new containers of docker; /x"),
        ([*EVERY[:2], "kernel"], EVERY, "root, at every login; kernel"),
    ],
)
def test_places_are_named_in_words(places: list[str], every: list[str], told: str) -> None:
    assert name_places(places, every, ["bob"]) == told
