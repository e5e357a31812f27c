# SPDX-License-Identifier: GPL-3.0-or-later
"""A restart that would cut the connection is refused by name, and the way in comes last."""

from __future__ import annotations

import pytest
from mlhost_limits.systemd.restarts import find_refusals, order_restarts

OWN = "ansible-pull.service"


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("dbus.service", "does not come back"),
        ("dbus-broker.service", "does not come back"),
        ("systemd-logind.service", "does not come back"),
        ("NetworkManager.service", "may take the network"),
        ("systemd-networkd.service", "may take the network"),
        ("ifup@eth0.service", "may take the network"),
        ("user@1000.service", "the service manager of whoever is connected"),
        (OWN, "this very run is part of it"),
        ("foo@.service", "only a service is restarted, by its whole name"),
        ("user-1000.slice", "only a service is restarted, by its whole name"),
        ("cron", "only a service is restarted, by its whole name"),
        (".service", "only a service is restarted, by its whole name"),
    ],
)
def test_what_is_refused(unit: str, words: str) -> None:
    (reason,) = find_refusals([unit], OWN, 1000)
    assert reason.startswith(f"services_restart: {unit}: ")
    assert words in reason


@pytest.mark.parametrize(
    ("unit", "own"),
    [
        ("slurmd.service", ""),
        ("ssh.service", "ssh.service"),
        ("user@1001.service", "ssh.service"),
        ("dbus-daemon-x.service", ""),
    ],
)
def test_what_may_be_restarted(unit: str, own: str) -> None:
    assert not list(find_refusals([unit], own, 1000))


def test_the_way_in_comes_last_and_nothing_twice() -> None:
    given = ["sshd@1.service", "b.service", "ssh.service", "a.service", "b.service"]
    assert order_restarts(given) == ["b.service", "a.service", "sshd@1.service", "ssh.service"]
