# SPDX-License-Identifier: GPL-3.0-or-later
"""A check leaves a host as it found it: files, processes, containers, logins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry

pytestmark = pytest.mark.host

# All in one login, so that what the login itself leaves is there before and after.
SNAPSHOT = r"""
take() {
  find / -xdev \( -path /proc -o -path /sys -o -path /tmp/before -o -path /tmp/after \) -prune -o \
    -printf '%p %i %M %U:%G %n %s %T@\n' | sort
  find /run /dev -printf '%p %i %M %U:%G\n' | sort
  for log in /var/log/lastlog /var/log/wtmp /run/utmp; do sha256sum $log; done
  ps -e -o comm= | grep -vE '^(kworker|ps$|grep$|sort$|uniq$)' | sort | uniq -c
  docker ps -aq; docker images -aq; docker network ls -q; docker volume ls -q
  last -w; sysctl -a 2>/dev/null | grep -E '^(fs\.(file-max|nr_open)|vm\.max_map)'
}
touch /tmp/before /tmp/after; sync; sleep 1
"""
CHECK = (
    "PYTHONPATH=/opt PYTHONDONTWRITEBYTECODE=1 python3 -m mlhost_limits.cli check --json"
    " --probe {probe} --canary {canary} > /dev/null"
)
# What goes on by itself on an idle host.
PASSING = (
    "/var/log/journal",
    "/run/log/journal",
    "/run/systemd/journal",
    "/var/lib/systemd/timers",
)
RUN = " /run "  # Its time changes while the folder for the services comes and goes.


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running(new=True) as running:
        carry(running)
        running.end_shared()
        running.ssh("docker info >/dev/null")
        yield running


def compare(host: Host, probe: str, canary: str) -> list[str]:
    """Return the lines of the snapshot that differ after a check."""
    check = CHECK.format(probe=probe, canary=canary)
    done = host.ssh(
        f"{SNAPSHOT} take > /tmp/before 2>&1; {check}; echo status $?; sleep 1; sync;"
        " take > /tmp/after 2>&1; diff /tmp/before /tmp/after",
        check=False,
        timeout=300,
    )
    assert done.stdout.startswith("status 1\n"), done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("<", ">"))]
    return [line for line in lines if not any(path in line for path in (*PASSING, RUN))]


def test_a_prediction_leaves_no_trace(host: Host) -> None:
    assert compare(host, "predict", "never") == []


def test_quiet_sessions_leave_no_trace(host: Host) -> None:
    """Not even that somebody logged in: no lastlog, wtmp or logind session."""
    assert compare(host, "quiet", "never") == []


def test_a_canary_leaves_its_result_and_no_more(host: Host) -> None:
    """The container and its image are gone.

    Docker and containerd keep their databases and empty folders, which a first container makes.
    """
    engines = ("/docker", "/containerd")
    different = compare(host, "quiet", "always")
    left = [line for line in different if not any(name in line for name in engines)]
    names = {line.split()[1] for line in left}
    assert {name for name in names if "mlhost-limits" in name} == {
        "/run/mlhost-limits",
        "/run/mlhost-limits/canary.json",
    }
    others = [line for line in left if "mlhost-limits" not in line]
    assert others == [], "\n".join(others)
