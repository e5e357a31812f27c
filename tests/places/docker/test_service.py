# SPDX-License-Identifier: GPL-3.0-or-later
"""When daemon.json takes effect, and what keeps dockerd from a restart, is said of every state."""

from __future__ import annotations

import pytest
from mlhost_limits.docker.unit_read import Service, find_hindrance, find_wait

GONE = "Docker is installed"
STATES = [
    (Service(), "docker.service is started", ""),
    (Service(program=False, loads=False), GONE, "docker.service has no file any more, so that"),
    (Service(program=False), GONE, "the program of dockerd is gone"),
    (Service(trouble="Exec format error"), "dockerd can be run (Exec format error)",
     "dockerd cannot be run (Exec format error)"),
    (Service(masked=True), "docker.service is unmasked and started", "docker.service is masked"),
    (Service(loads=False), "dockerd is started; docker.service has no file", "docker.service has"),
    (Service("dind.service"), "dind.service is started", ""),
    (Service(""), " is started", "dockerd (pid 0) was not started by systemd"),
]  # fmt: skip


@pytest.mark.parametrize(("service", "wait", "hindrance"), STATES)
def test_each_state_has_its_words(service: Service, wait: str, hindrance: str) -> None:
    """A daemon that runs waits for nothing; only one that would come back may be restarted."""
    assert find_wait(service) == wait
    assert find_wait(service._replace(pid=7)) == ""
    said = find_hindrance(service)
    assert said.startswith(hindrance)
    assert bool(said) is bool(hindrance)
