# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode shows every change as a diff, and makes none."""

from __future__ import annotations

import json
import os
import subprocess

from testinfra.host import Host

CACHE = "/scratch/cache"
LOOK = "cat /etc/fstab /etc/tmpfiles.d/90-mlhost.conf; findmnt -o TARGET,SIZE,OPTIONS"


def test_a_larger_and_younger_cache_is_only_shown(root: Host) -> None:
    before = root.check_output(LOOK)
    given = {"path": CACHE, "tmpfs_size": "128MiB", "max_age": "20d"}
    words = ("-m", "mlhost.limits.workspace", "-a", json.dumps(given), "--check", "--diff")
    inventory = os.environ["MOLECULE_INVENTORY_FILE"]
    told = subprocess.run(
        ["ansible", "host", "-i", inventory, *words],
        env={**os.environ, "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for line in (
        f"-d {CACHE} 1777 root root -",
        f"+d {CACHE} 1777 root root 20d",
        "-tmpfs of 67108864 bytes",
        "+tmpfs of 134217728 bytes",
    ):
        assert line in told.splitlines()
    assert "size=134217728" in told
    assert root.check_output(LOOK) == before
