# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever may have set the limits of a process is named, whatever it calls itself."""

from __future__ import annotations

import pytest
from mlhost_limits.core.process_owner import find_owning_uid

ROOT, ALICE, SETUID = "0\t0\t0\t0", "1000\t1000\t1000\t1000", "1000\t0\t0\t0"
DAEMON = "0::/system.slice/cron.service"
NOBODY = "4294967295"


@pytest.mark.parametrize(
    ("uids", "cgroup", "loginuid", "uid"),
    [
        (ROOT, DAEMON, NOBODY, 0),
        (ROOT, DAEMON, "", 0),
        (ROOT, DAEMON, "0", 0),
        (ROOT, "0::/user.slice/user-0.slice/session-1.scope", "0", 0),
        (ALICE, DAEMON, NOBODY, 1000),
        (SETUID, DAEMON, NOBODY, 1000),
        ("0\t0\t1000\t0", DAEMON, "", 1000),
        (ROOT, DAEMON, "1000", 1000),
        (ROOT, "0::/user.slice/user-1000.slice/session-1.scope", NOBODY, 1000),
        (ROOT, "0::/user.slice/user-1000.slice", "", 1000),
        (ROOT, "1:name=systemd:/user.slice/user-7.slice/user@7.service/x\n0::/", "", 7),
        (ROOT, "0::/user.slice/user-7.slice/user@7.service/user@0.service", "", 7),
        (ROOT, "3:cpu:/user.slice/user-7.slice\n0::/", "", 0),
        (ROOT, "0::/system.slice/user-7.slicer", "", 0),
    ],
)
def test_the_owner_of_a_process(uids: str, cgroup: str, loginuid: str, uid: int) -> None:
    status = f"Name:\tUid:\\n0\nUmask:\t0022\nUid:\t{uids}\nGid:\t0\t0\t0\t0\n"
    assert find_owning_uid(status, cgroup, loginuid) == uid


def test_a_status_without_users_is_nobody_s() -> None:
    with pytest.raises(ValueError, match="names no users"):
        find_owning_uid("Name:\tx\n", DAEMON, "")
