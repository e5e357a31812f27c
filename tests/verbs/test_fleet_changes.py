# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs side by side: what is newly red and what is mended, and nothing is by mere absence."""

from __future__ import annotations

import pytest
from mlhost_limits.fleet import read_host
from mlhost_limits.fleet_changes import CauseChange, Changes, find_changes
from mlhost_limits.fleet_view import Fleet

GONE = {"unreachable": True, "msg": "no route"}


def find(*codes: str) -> dict[str, object]:
    """Return the result of a host with a failure for each code, and a passing finding."""
    findings: list[dict[str, object]] = [{"status": "pass", "place": "kernel", "item": "a"}]
    for code in {"x", "y", "new"} - set(codes):
        findings.append({"status": "pass", "place": "kernel", "item": code})
    for code in codes:
        cause = {"code": code, "text": f"{code} (pid 7)"}
        findings.append({"status": "fail", "place": "kernel", "item": code, "causes": [cause]})
    return {"findings": findings}


def gather(**hosts: object) -> Fleet:
    fleet = Fleet()
    for name, result in hosts.items():
        fleet.add(read_host(name, result))
    return fleet


def test_hosts_are_told_by_what_became_of_them() -> None:
    before = gather(a=find(), b=find("x"), c=find("x"), d=find("x"), e=find(), f=GONE)
    now = gather(a=find("x"), b=find(), c=find("x"), d=GONE, g=find("x"), f=find("x"))
    changes = find_changes(before, now, "then")
    assert changes[:-1] == (
        "then",
        ("a", "f"),
        ("b",),
        ("c",),
        ("d",),
        ("g",),
        ("e",),
    )


def test_a_cause_comes_and_goes_only_where_both_runs_looked() -> None:
    before = gather(a=find("x"), b=find("x", "y"), c=find("x"), d=GONE)
    now = gather(z=find("new"), a=find("y"), b=find("y"), c=GONE, d=find("x"))
    assert find_changes(before, now).causes == (
        CauseChange("y", "y (pid 7)", ("a",), ()),
        CauseChange("x", "x (pid 7)", (), ("a", "b")),
    )


def test_a_cause_is_the_same_but_for_numbers_and_nothing_changed_is_empty() -> None:
    now = gather(a=find("x"))
    now.groups[0].sample = {"code": "x", "text": "x (pid 9)"}
    changes = find_changes(gather(a=find("x")), now)
    assert changes == Changes("", (), (), ("a",), (), (), (), ())


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ([{"status": "unknown", "place": "kernel", "item": "x", "reason": "no root"}], "lost"),
        ([], "lost"),
        ([{"status": "pass", "place": "kernel", "item": "a"}], "lost"),
        ([{"status": "waived", "place": "kernel", "item": "x", "waiver": "until 2030"}], ""),
        ([{"status": "pass", "place": "kernel", "item": "x", "after_boot": "fail"}], "still"),
        ([{"status": "pass", "place": "kernel", "item": "x"}], "mended"),
    ],
)
def test_only_what_passes_now_is_mended(now: list[dict[str, object]], told: str) -> None:
    changes = find_changes(gather(a=find("x")), gather(a={"findings": now}))
    kinds = ("mended", "still", "lost", "red")
    assert [kind for kind in kinds if getattr(changes, kind)] == [told] * bool(told)
    assert [one.mended for one in changes.causes if one.mended] == [("a",)] * (told == "mended")


def test_a_container_that_is_gone_is_mended() -> None:
    bad = {"status": "fail", "place": "container:docker/a", "item": "nofile"}
    good = {"status": "pass", "place": "kernel", "item": "x"}
    before, now = ({"findings": [good, *more]} for more in ([bad], []))
    assert find_changes(gather(a=before), gather(a=now)).mended == ("a",)
