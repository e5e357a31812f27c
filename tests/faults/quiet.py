# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that meet their policy, on which no cause may be named."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry
from tests.host.snapshot import Snapshot

from .base import POLICY
from .changes import CHANGES
from .fault import Policy
from .judge import describe
from .shell import Shell, opened

STOCK: Policy = {
    "sessions": [{"users": ["*", "root"], "limits": {"nofile": {"soft": 1024, "hard": 4096}}}],
    "kernel": {"fs.nr_open": 1048576, "fs.file-max": 65536, "vm.max_map_count": 65530},
    "containers": {"docker": {"limits": {"nofile": 1024}, "shm_size": "64MiB"}},
    "processes": [
        {"unit": "ssh.service", "limits": {"nofile": {"soft": 1024, "hard": 4096}}},
        {"name": "cron", "limits": {"nofile": {"soft": 1024}}},
        {"user": "root", "limits": {"nofile": {"soft": 1024}}},
    ],
}
"""What every Debian gives without a line of ours."""

RELEASES = ("bullseye", "bookworm", "trixie")
PROVISIONED, CHANGED = "the provisioned host", "unrelated changes"
QUIET_HOSTS = (PROVISIONED, *(f"stock {release}" for release in RELEASES), CHANGED)


class Quiet(NamedTuple):
    """A host that meets its policy, and what a check said against it nevertheless."""

    name: str
    alarms: tuple[str, ...]
    seconds: float


def find_alarms(findings: Iterable[dict[str, Any]]) -> set[str]:
    """Return what is not met, not seen or will not last, and every cause that is named."""
    found = set()
    for one in findings:
        later = "fail" in (one["next_session"], one["next_restart"], one["after_boot"])
        if one["status"] != "pass" or later or one["causes"]:
            causes = "; ".join(f"{cause['code']}: {cause['text']}" for cause in one["causes"])
            found.add(f"{describe(one)} {one['status']} {one['reason']} {causes}")
    return found


def try_quiet(saved: Snapshot, name: str) -> Iterator[Quiet]:
    """Check a quiet host, or one after each of many changes that mean nothing."""
    if name == CHANGED:
        with guest.running(saved=saved) as host, opened(host) as shell:
            yield from try_changes(shell)
    elif name == PROVISIONED:
        with guest.running(saved=saved) as host:
            yield look(host, name, POLICY, "training")
    else:
        with guest.running(name.removeprefix("stock ")) as host:
            carry(host)
            yield look(host, name, STOCK, "none")


def look(host: Host, name: str, policy: Policy, profile: str) -> Quiet:
    start = time.monotonic()
    with opened(host) as shell:
        alarms = find_alarms(shell.check(policy, profile).findings)
    return Quiet(name, tuple(sorted(alarms)), time.monotonic() - start)


def try_changes(shell: Shell) -> Iterator[Quiet]:
    """Make one change after the other; an alarm belongs to the change that brought it."""
    before = find_alarms(shell.check(POLICY).findings)
    for name, script in CHANGES.items():
        start = time.monotonic()
        shell.do(script)
        alarms = find_alarms(shell.check(POLICY).findings)
        yield Quiet(f"after {name}", tuple(sorted(alarms - before)), time.monotonic() - start)
        before = alarms
