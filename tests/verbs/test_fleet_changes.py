# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs side by side: what is newly red and what is mended, and nothing is by mere absence."""

from __future__ import annotations

from mlhost_limits.fleet import read_host
from mlhost_limits.fleet_changes import CauseChange, Changes, find_changes
from mlhost_limits.fleet_view import Fleet

GONE = {"unreachable": True, "msg": "no route"}


def find(*codes: str) -> dict[str, object]:
    """Return the result of a host with a failure for each code, and a passing finding."""
    findings: list[dict[str, object]] = [{"status": "pass", "place": "kernel", "item": "a"}]
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
