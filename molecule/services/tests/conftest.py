# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs here from the other scenarios."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testinfra.host import Host

LOG_IN = "systemd-run --quiet --wait --collect --uid=alice -p PAMName=login"
READY = "until [ -S /run/user/1000/systemd/private ]; do sleep 0.5; done"
GONE = "while loginctl show-user alice > /dev/null 2>&1; do sleep 0.5; done"


@pytest.fixture(scope="session", autouse=True)
def _jobs() -> None:
    """Hold no jobs of cron: no session is looked at."""


@pytest.fixture
def leaves_shared_memory(root: Host) -> Callable[[], bool]:
    """Return what tells whether a file in /dev/shm outlives the last login of its user."""

    def tell() -> bool:
        root.check_output("loginctl disable-linger alice; systemctl stop user@1000.service")
        try:
            root.check_output(
                f"{LOG_IN} sh -c 'echo batch > /dev/shm/of-alice';"
                f" timeout 60 sh -c '{GONE}'; sleep 1"
            )
            outlives = root.file("/dev/shm/of-alice").exists
        finally:
            root.check_output(
                f"rm -f /dev/shm/of-alice; loginctl enable-linger alice; timeout 60 sh -c '{READY}'"
            )
        return outlives

    return tell
