# SPDX-License-Identifier: GPL-3.0-or-later
"""The black box that the role starts tells of a limit before a run dies of it, and why it died."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from testinfra.host import Host

BOX = "mlhost-limits-black-box.service"
PROGRAM = "/usr/local/lib/mlhost-limits/mlhost-limits.pyz"
METRICS = "/var/lib/prometheus/node-exporter/mlhost-limits-black-box.prom"
ENDS = "/var/lib/mlhost-limits/ends"
LOOK = f"systemctl status {BOX}; journalctl -n 30 -u {BOX}; ls -la {ENDS}"
# However slow the machine, the black box looks every 30 s: three times while this climbs, and twice
# while it tries again before it gives up, as services do.
CLIMB = """
import time
held = []
try:
    while True:
        held.append(open('/dev/null'))
        time.sleep(1)
except OSError:
    time.sleep(65)
    raise
"""


@pytest.fixture(scope="module")
def told(root: Host) -> str:
    """Let a service die of its descriptors, and return what is said of it afterwards."""
    start = f'systemd-run --unit climb -p LimitNOFILE=100 -p User=alice python3 -c "{CLIMB}"'
    root.check_output(start)
    for _second in range(400):
        done = root.run(f"{PROGRAM} why --unit climb.service")
        if "black box" in done.stdout:
            return str(done.stdout)
        time.sleep(1)
    return str(root.run(f"{PROGRAM} why --unit climb.service; {LOOK}").stdout)


@pytest.mark.look(LOOK)
def test_what_a_service_died_of_is_shown(told: str) -> None:
    assert told.startswith("limit: the process had as many files open as its soft limit allows")
    assert "had 100 of 100 (nofile, 100%) before it ended" in " ".join(told.split())
    assert "seen by the black box of this host" in told


@pytest.mark.look(LOOK)
def test_it_was_told_before(root: Host, told: str) -> None:
    assert told
    lines = root.check_output(f"journalctl -o cat -u {BOX}").splitlines()
    assert any("unit:climb.service: nofile: process" in one and "full in" in one for one in lines)
    assert "mlhost_limits_black_box_timestamp_seconds" in root.check_output(f"cat {METRICS}")


def find_report(root: Host) -> dict[str, Any]:
    """Return what was kept of that service, among what else died meanwhile."""
    reports = [
        json.loads(root.check_output(f"cat {ENDS}/{name}"))
        for name in root.check_output(f"ls {ENDS}").split()
    ]
    (own,) = [one for one in reports if "/climb.service" in one["cgroup"]]
    return dict(own)


def test_what_died_is_shown_to_root_alone(root: Host, told: str) -> None:
    assert told
    pid = find_report(root)["end"]["pid"]
    for way in (f"--pid {pid}", "--last"):
        shown = root.run(f"{PROGRAM} why {way}").stdout
        assert "seen by the black box" in shown
        assert "limit: the process had as many files" in shown or way == "--last"
    of_alice = root.run(f"su alice -s /bin/sh -c '{PROGRAM} why --last'")
    assert (of_alice.rc, "only root may read" in of_alice.stderr) == (2, True)
    assert root.check_output(f"stat -c %a:%U {ENDS}") == "700:root"


def test_what_is_kept_is_what_watch_writes(root: Host, told: str) -> None:
    assert told
    report = find_report(root)
    assert report["format"] == "mlhost.limits/watch"
    assert report["reason"] == "nofile"
    assert report["limits"][0]["most"] >= 98
    assert report["limits"][0]["grew_since"]


def test_it_stays_cheap(root: Host, told: str) -> None:
    assert told
    pid = root.check_output(f"systemctl show -P MainPID {BOX}")
    own = root.check_output(f"grep RssAnon /proc/{pid}/status").split()
    assert int(own[1]) < 40_000  # Not what the kernel keeps of the files that it read.
