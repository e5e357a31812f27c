# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a user's own dockerd, see dockerd-rootless.sh(1), on a host that can run one."""

from __future__ import annotations

from tests.faults.fault import Culprit, Fault
from tests.faults.of_leftovers import HIDE, RESTORE

EXTRA = "rootless"
NEW = "^new-container:docker/alice "
ANEW = "sh /opt/start_rootless.sh again"

FAULTS: list[Fault] = []
MORE = [
    Fault(
        "rootless: the user's manager is older than the limits",
        f"{HIDE}; {ANEW}; {RESTORE}",
        (Culprit(words="of alice"),),
        (NEW,),
        person=ANEW,
        extra=EXTRA,
    ),
]
