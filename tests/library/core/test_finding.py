# SPDX-License-Identifier: GPL-3.0-or-later
"""What was not observed never passes, and every bound of a policy is judged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.finding import (
    FAIL,
    LATER,
    PASS,
    UNKNOWN,
    WAIVED,
    Observation,
    Requirement,
    count_statuses,
    is_short_by_root,
    judge,
    judge_limits,
    observe_limit,
    require_limits,
)
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.kernel.policy import KernelValue, require_kernel

PLACE = "session:alice@sshd"
OBSERVED = {"nofile": Rlimit(1024, 1048576), "memlock": Rlimit(UNLIMITED, UNLIMITED)}


def required(
    minimum: int | None = None, maximum: int | None = None, exact: str | None = None
) -> Requirement:
    return Requirement("kernel", "vm.x", "value", minimum, maximum, exact)


@pytest.mark.parametrize(
    ("requirement", "value", "status"),
    [
        (required(5), 5, PASS),
        (required(5), 4, FAIL),
        (required(5), UNLIMITED, PASS),
        (required(UNLIMITED), 2**63, FAIL),
        (required(UNLIMITED), UNLIMITED, PASS),
        (required(None, 5), 5, PASS),
        (required(None, 5), 6, FAIL),
        (required(2, 5), 1, FAIL),
        (required(0), 0, PASS),
        (required(5), None, UNKNOWN),
        (required(exact="5"), None, UNKNOWN),
        (required(exact="5"), 5, PASS),
        (required(exact="1 2"), "1\t2", PASS),
        (required(exact="1 2"), "12", FAIL),
        (required(5), "many", UNKNOWN),
    ],
)
def test_the_verdict(requirement: Requirement, value: int | str | None, status: str) -> None:
    assert judge(requirement, Observation(value, "/proc/sys")).status == status


def test_a_text_that_is_no_number_says_so() -> None:
    finding = judge(required(5), Observation("many", "/proc/sys"))
    assert finding.observation == Observation(None, "/proc/sys", "'many' is not a number")


@given(
    st.builds(
        required, *(st.none() | st.integers(0, UNLIMITED) for _ in range(2)), st.none() | st.text()
    ),
    st.text(),
)
def test_the_unknown_never_passes(requirement: Requirement, reason: str) -> None:
    assert judge(requirement, Observation(None, "", reason)).status == UNKNOWN


@pytest.mark.parametrize(
    ("limits", "bounds"),
    [
        ({"nofile": Limit(5, 9)}, [("soft", 5, None, None), ("hard", 9, None, None)]),
        ({"nofile": Limit(5, 9, 9)}, [("soft", 5, None, None), ("hard", 9, 9, None)]),
        ({"nofile": Limit(soft=5)}, [("soft", 5, None, None)]),
        ({"nofile": Limit(max=5)}, [("hard", None, 5, None)]),
        ({"nofile": Limit(soft=0)}, [("soft", 0, None, None)]),
        ({"maxlogins": Limit(5, 5)}, [("value", 5, None, None)]),
        ({"chroot": Limit(text="/x")}, [("value", None, None, "/x")]),
        ({}, []),
    ],
)
def test_what_a_policy_demands(limits: dict[str, Limit], bounds: list[tuple[object, ...]]) -> None:
    found = [
        (one.bound, one.minimum, one.maximum, one.exact) for one in require_limits(PLACE, limits)
    ]
    assert found == bounds


def test_what_is_no_rlimit_is_demanded_beside_what_is() -> None:
    limits = {"maxlogins": Limit(4, 4), "chroot": Limit(text="/x"), "nofile": Limit(5, 6, 7)}
    assert [tuple(one)[1:6] for one in require_limits(PLACE, limits)] == [
        ("maxlogins", "value", 4, None, None),
        ("chroot", "value", None, None, "/x"),
        ("nofile", "soft", 5, None, None),
        ("nofile", "hard", 6, 7, None),
    ]


def test_a_sysctl_is_demanded_as_it_stands() -> None:
    assert require_kernel("vm.x", KernelValue(1, 2, "3")) == required(1, 2, "3")


@pytest.mark.parametrize(
    ("bound", "item", "limits", "observation"),
    [
        ("soft", "nofile", OBSERVED, Observation(1024, "how")),
        ("hard", "nofile", OBSERVED, Observation(1048576, "how")),
        ("soft", "nofile", None, Observation(None, "how", "why")),
        (
            "value",
            "maxlogins",
            OBSERVED,
            Observation(None, "how", "maxlogins is not a limit that a process shows"),
        ),
    ],
)
def test_what_is_picked_from_the_limits_of_a_process(
    bound: str, item: str, limits: dict[str, Rlimit] | None, observation: Observation
) -> None:
    assert observe_limit(Requirement(PLACE, item, bound, 5), limits, "how", "why") == observation


def test_all_limits_of_a_process_are_judged() -> None:
    wanted = {
        "nofile": Limit(65536, 1048576),
        "memlock": Limit(UNLIMITED, UNLIMITED),
        "core": Limit(0),
    }
    findings = judge_limits(PLACE, wanted, OBSERVED, "how")
    assert [one.status for one in findings] == [FAIL, PASS, PASS, PASS, UNKNOWN]
    assert count_statuses(findings) == {PASS: 3, FAIL: 1, UNKNOWN: 1, WAIVED: 0, LATER: 0}
    unseen = judge_limits(PLACE, wanted, None, "how", "gone")
    assert count_statuses(unseen) == {PASS: 0, FAIL: 0, UNKNOWN: 5, WAIVED: 0, LATER: 0}


@pytest.mark.parametrize(
    ("requirement", "value", "words"),
    [
        (
            Requirement(PLACE, "memlock", "hard", UNLIMITED, unit="bytes"),
            65536,
            ("unlimited", "64KiB"),
        ),
        (Requirement(PLACE, "nofile", "hard", 5, 9), 7, ("5 to 9", "7")),
        (required(exact="1 2"), "1\t2", ("exactly 1 2", "1\t2")),
        (required(5), None, ("5", None)),
    ],
)
def test_a_finding_as_data(
    requirement: Requirement, value: int | str | None, words: tuple[object, ...]
) -> None:
    data = judge(requirement, Observation(value, "how", "why")).as_dict()
    assert (data["required"], data["observed"]) == words
    assert (data["place"], data["item"], data["bound"]) == requirement[:3]
    assert (data["how"], data["reason"]) == ("how", "why")


@pytest.mark.parametrize(
    ("status", "owner", "short"),
    [(FAIL, "", True), (FAIL, "bob", False), (PASS, "", False), (UNKNOWN, "", False)],
)
def test_a_host_is_bad_by_what_root_decides_alone(status: str, owner: str, short: bool) -> None:
    finding = judge(Requirement("kernel", "x", "value", 1), Observation(1, ""))
    assert is_short_by_root(finding._replace(status=status, owner=owner)) is short
