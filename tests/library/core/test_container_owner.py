# SPDX-License-Identifier: GPL-3.0-or-later
"""A running container is its maker's doing, unless the engine gives a new one too little as well."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Cause, Remedy
from mlhost_limits.core.finding import Observation, Requirement, judge
from mlhost_limits.core.process_owner import MAKER, own_running

WANTED = Requirement("container:docker/web", "nofile", "soft", 5)


@pytest.mark.parametrize(
    ("codes", "user", "owner"),
    [
        ("", "", MAKER),
        ("docker-changed-inside", "", MAKER),
        ("docker-default-too-low docker-container-older", "", ""),
        ("containerd-base-spec", "", ""),
        ("docker-default-too-low", "alice", "alice"),
        ("", "alice", "alice"),
    ],
)
def test_whose_doing_it_is(codes: str, user: str, owner: str) -> None:
    causes = tuple(Cause(code, "text", Remedy("mend it")) for code in codes.split())
    failing = judge(WANTED, Observation(1, ""))._replace(causes=causes)
    assert own_running(failing, user).owner == owner
    fine = judge(WANTED, Observation(9, ""))
    assert own_running(fine, user) == fine
