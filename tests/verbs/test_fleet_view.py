# SPDX-License-Identifier: GPL-3.0-or-later
"""What is alike on many hosts is told once, with the number of hosts, and nothing is lost."""

from __future__ import annotations

import pytest
from mlhost_limits.fleet import HostResult, read_host
from mlhost_limits.fleet_view import Column, Fleet, share_place, summarize

LINE = {"file": "/etc/security/limits.d/95.conf", "line": 3, "text": "alice soft nofile 1024"}


def find(status: str = "pass", observed: object = "65536", **more: object) -> dict[str, object]:
    return {
        "status": status,
        "place": "kernel",
        "item": "fs.file-max",
        "bound": "value",
        "required": "65536",
        "observed": observed,
        "how": "/proc/sys",
        "reason": "",
        "causes": [],
        **more,
    }


def blame(text: str, at: object = None) -> dict[str, object]:
    return {"code": "a-code", "text": text, "at": at, "remedy": {"text": "mend it"}}


def gather(*hosts: object) -> Fleet:
    fleet = Fleet()
    for number, given in enumerate(hosts):
        result = {"findings": given} if isinstance(given, list) else given
        fleet.add(read_host(f"host{number}", result))
    return fleet


@pytest.mark.parametrize(
    ("place", "shared"),
    [
        ("kernel", "kernel"),
        ("session:root@sshd", "session:root@sshd"),
        ("session:alice@sshd", "session:*@sshd"),
        ("session:a@b@su", "session:*@su"),
        ("container:docker/job-7", "container:docker/*"),
        ("process:4711 (python3)", "process:*"),
        ("process:self", "process:self"),
        ("service:getty@tty1.service", "service:getty@*"),
        ("service:ssh.service", "service:ssh.service"),
        ("new-container:docker", "new-container:docker"),
    ],
)
def test_places_that_differ_from_host_to_host_are_one_column(place: str, shared: str) -> None:
    assert share_place(place) == shared


def test_findings_that_are_alike_are_kept_once() -> None:
    fleet = gather([find()], [find()], [find(how="/proc/7/limits")], [find(how="/proc/9/limits")])
    assert [one["how"] for one in fleet.findings] == ["/proc/sys", "/proc/PID/limits"]
    assert [row.cells for row in fleet.rows] == [((0,),), ((0,),), ((1,),), ((1,),)]


def test_a_failing_process_keeps_its_number() -> None:
    fleet = gather([find("fail", how="/proc/7/limits (pid 7)", causes=[blame("x")])])
    assert fleet.findings[0]["how"] == "/proc/7/limits (pid 7)"


def test_a_cause_is_counted_over_hosts_by_the_line_at_fault() -> None:
    one, two = blame("alice (pid 7)", LINE), blame("bob (pid 9)", LINE)
    other = blame("another", {**LINE, "line": 4})
    fleet = gather(
        [find("fail", causes=[one]), find("fail", item="b", causes=[one])],
        [find("fail", causes=[two])],
        [find("fail", causes=[other])],
    )
    groups = fleet.rank_causes()
    assert [(group.sample["text"], list(group.hosts)) for group in groups] == [
        ("alice (pid 7)", [0, 1]),
        ("another", [2]),
    ]
    assert groups[0].statuses == {"fail": 3}
    assert fleet.causes_of == [(0,), (0,), (1,), (2,)]


def test_causes_without_a_line_are_the_same_but_for_numbers() -> None:
    fleet = gather(
        [find("fail", causes=[blame("docker (pid 7) is older")])],
        [find("fail", causes=[blame("docker (pid 9) is older")])],
        [find("fail", causes=[blame("slurmd (pid 9) is older")])],
    )
    assert [len(group.hosts) for group in fleet.rank_causes()] == [2, 1]


@pytest.mark.parametrize(
    ("finding", "code", "text"),
    [
        (find("fail", "7"), "no cause named", "kernel: fs.file-max 7, required 65536"),
        (find("unknown", None, reason="no Docker"), "unseen", "no Docker"),
        (find("unknown", None), "unseen", "kernel: fs.file-max unseen"),
        (find("waived", None, reason="gone"), "unseen", "gone"),
    ],
)
def test_a_shortfall_without_a_cause_is_told_as_well(
    finding: dict[str, object], code: str, text: str
) -> None:
    (group,) = gather([finding]).rank_causes()
    assert (group.code, group.sample["text"]) == (code, text)


def test_a_cause_that_is_called_as_a_column_is_not_one() -> None:
    met = [find(item=f"i{number}") for number in range(6)]
    kernel = {"code": "k", "text": "text"}
    fleet = gather(
        [*met, find(place="group", item="k", bound="text")], [find("fail", causes=[kernel])]
    )
    assert (len(fleet.columns), len(fleet.groups)) == (8, 1)


def test_a_host_without_a_result_is_a_row_and_a_cause() -> None:
    fleet = gather([find()], None, {"unreachable": True, "msg": "no route"}, [])
    assert fleet.count_hosts() == {
        "fail": 0,
        "unchecked": 2,
        "unknown": 1,
        "later": 0,
        "waived": 0,
        "pass": 1,
    }
    assert {group.sample["text"] for group in fleet.rank_causes()} == {
        "no result: the check did not run there",
        "no route",
        "nothing was asked of it",
    }


def test_what_fails_comes_before_what_is_unknown_and_more_hosts_before_fewer() -> None:
    fleet = gather(
        [find("unknown", None, reason="a")],
        [find("unknown", None, reason="a")],
        [find("fail", causes=[blame("b")]), find("fail", causes=[blame("c")])],
        [find("fail", causes=[blame("c")])],
        [find(after_boot="fail", causes=[blame("d")]), find("waived", causes=[blame("e")])],
    )
    assert [group.sample["text"] for group in fleet.rank_causes()] == ["c", "b", "a", "d", "e"]


def test_the_minority_drifts_where_most_have_one_value() -> None:
    hosts = [[find(observed=value)] for value in ("1", "1", "2", "1", "3")]
    (drift,) = gather(*hosts).find_drift()
    assert drift == (0, "1", 3, {"2": [2], "3": [4]})


@pytest.mark.parametrize(
    "values",
    [("1", "1", "1"), ("1", "2"), ("1", "2", "3"), ("1", "1", "2", "2"), (None, None, "1")],
)
def test_nothing_drifts_without_a_majority(values: tuple[object, ...]) -> None:
    assert not gather(*([find(observed=value)] for value in values)).find_drift()


def test_a_host_with_two_values_has_none_that_could_drift() -> None:
    two = [find(observed="1"), find(observed="2")]
    assert not gather([find(observed="1")], [find(observed="1")], two).find_drift()


def test_columns_are_in_the_order_of_a_report() -> None:
    places = ("path:/x", "container:docker/a", "session:root@su", "kernel", "session:alice@su")
    fleet = gather(
        [find(place=place, bound=bound) for place in places for bound in ("hard", "soft")]
    )
    ordered = [fleet.columns[number] for number in fleet.order_columns()]
    assert ordered[:3] == [
        Column("kernel", "fs.file-max", "soft"),
        Column("kernel", "fs.file-max", "hard"),
        Column("session:*@su", "fs.file-max", "soft"),
    ]
    assert ordered[-1].place == "path:/x"


def test_a_column_that_comes_later_is_absent_before() -> None:
    fleet = gather([find()], [find(), find(item="b", observed="9")], [find(item="b")])
    assert [len(row.cells) for row in fleet.rows] == [1, 2, 2]
    assert not fleet.find_drift()


def test_a_summary_names_the_causes_of_most_hosts() -> None:
    hosts = [[find("fail", causes=[blame(f"cause {letter}")])] for letter in "abbcdef"]
    assert summarize(gather(*hosts), most=2).splitlines() == [
        "7 hosts: 7 fail",
        "2 hosts: cause b",
        "1 host: cause a",
        "and 4 other causes",
    ]
    assert summarize(gather(*hosts), most=5).splitlines()[-1] == "and 1 other cause"
    assert summarize(gather([find()])) == "1 host: 1 pass"


def test_a_host_is_let_go_of() -> None:
    assert gather([find()]).rows[0].host == HostResult("host0", "checked")
