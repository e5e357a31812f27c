# SPDX-License-Identifier: GPL-3.0-or-later
"""memlock as a share of the memory is so many bytes on a host, and refused of a tree."""

from __future__ import annotations

import pytest
from mlhost_limits.core.reader import Limit, PolicyError
from mlhost_limits.core.shares import fill_shares, find_shares, take_share
from mlhost_limits.kernel import use_read
from mlhost_limits.schema import load_policy
from mlhost_limits.sessions.policy import SessionRule

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("policy", "shares"),
    [
        (
            {"sessions": [{"users": ["*"], "limits": {"memlock": "90%"}}]},
            {"sessions[0].limits.memlock": 90},
        ),
        (
            {"containers": {"docker": {"limits": {"memlock": {"soft": "5 %", "hard": "100%"}}}}},
            {
                "containers.docker.limits.memlock.soft": 5,
                "containers.docker.limits.memlock.hard": 100,
            },
        ),
        ({"memlock": "0%"}, {}),
        ({"memlock": "101%"}, {}),
        ({"memlock": "unlimited", "nofile": "90%"}, {}),
        ({"memlock": ["90%"]}, {}),
        ({"memlock": 90}, {}),
        ({"a": [{"nofile": "5%"}, {"memlock": "5%"}]}, {"a[1].memlock": 5}),
        (None, {}),
    ],
)
def test_shares_are_found_by_their_keys(policy: object, shares: dict[str, int]) -> None:
    assert find_shares(policy) == shares


@pytest.mark.parametrize(
    ("share", "memory", "size"),
    [
        (90, 8 * GIB + 4096, 7372 * MIB),
        (90, 256 * GIB - 700 * MIB, 229 * GIB),
        (90, 256 * GIB - 701 * MIB, 229 * GIB),  # Another kernel keeps a little more.
        (100, 16 * GIB, 16 * GIB),
        (100, 16 * GIB + MIB, 16 * GIB),
        (100, 16 * GIB - 1, 16 * GIB - MIB),
        (50, 3 * MIB, MIB),
    ],
)
def test_a_share_is_whole_units_that_a_kernel_does_not_change(
    share: int, memory: int, size: int
) -> None:
    assert take_share(share, memory) == size


def test_a_policy_has_the_bytes_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use_read, "read_meminfo", lambda _proc: {"MemTotal": 10 * GIB})
    limits = {"memlock": {"soft": "50%", "hard": "90%"}}
    policy = load_policy({"sessions": [{"users": ["*"], "limits": limits}]}, "none")
    wanted = Limit(5 * GIB, 9 * GIB)
    assert policy.get("sessions") == (SessionRule(("*",), {"memlock": wanted}),)


def test_only_shares_are_filled_and_only_of_memory() -> None:
    policy = {
        "a": ["5%", {"memlock": "50%", "nofile": "50%"}],
        "memlock": {"soft": 7, "hard": "50%"},
    }
    assert fill_shares(policy, 2 * GIB) == {
        "a": ["5%", {"memlock": GIB, "nofile": "50%"}],
        "memlock": {"soft": 7, "hard": GIB},
    }


def test_a_tree_has_no_memory_to_take_a_share_of() -> None:
    policy = {"sessions": [{"users": ["*"], "limits": {"memlock": "90%"}}]}
    with pytest.raises(PolicyError, match=r"sessions\[0\]\.limits\.memlock: 90% is a share of a"):
        load_policy(policy, "none", root="/srv/image")
    assert fill_shares({"memlock": "1GiB"}, None) == {"memlock": "1GiB"}


def test_a_share_that_is_none_is_refused_as_any_other_text() -> None:
    policy = {"sessions": [{"users": ["*"], "limits": {"memlock": "101%"}}]}
    with pytest.raises(PolicyError, match="'101%' is not a limit"):
        load_policy(policy, "none")
