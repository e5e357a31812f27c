# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a killed process lived is compared with a cgroup, or with the id of a container."""

from __future__ import annotations

import pytest
from mlhost_limits.why.kills import is_below

ID = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("path", "home", "is_there"),
    [
        ("/job.slice/a.scope", "/job.slice", True),
        ("/job.slice", "/job.slice/", True),
        ("/job.slices", "/job.slice", False),
        ("/", "/job.slice", False),
        (f"/docker/{ID}", ID, True),
        (f"/docker/{ID}/init", ID, True),
        (f"/{ID}", ID, True),
        (f"/system.slice/docker-{ID}.scope", ID, True),
        (f"/docker-{ID}.scope/init", ID, True),
        (f"/system.slice/libpod-{ID}.scope", ID, False),
        (f"/user.slice/{ID}", ID, False),
        (f"/user.slice/user-1000.slice/docker-{ID}.scope", ID, False),
        (f"/docker/user.slice/{ID}", ID, True),
    ],
)
def test_what_a_user_can_have_made_is_no_container(path: str, home: str, is_there: bool) -> None:
    assert is_below(path, home) is is_there
