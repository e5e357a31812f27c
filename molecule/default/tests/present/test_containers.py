# SPDX-License-Identifier: GPL-3.0-or-later
"""A new container gets what the policy promises, whether one starts it or enters it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.look(
    "cat /etc/docker/daemon.json",
    "docker ps -a",
    "journalctl -b --no-pager -n 20 -u docker -u containerd",
)


def test_its_first_process_has_the_limits(contained):
    assert contained == (("65536", "1048576"), ("unlimited", "unlimited"))


def test_what_enters_it_has_at_least_the_limits(container, root, read_limits):
    """An older runc, at exec, races with Go's own raising of soft to hard; either may win."""
    seen = read_limits(
        root.check_output("docker exec %s /busybox cat /proc/self/limits", container)
    )
    assert seen.nofile in [("65536", "1048576"), ("1048576", "1048576")]
    assert seen.memlock == ("unlimited", "unlimited")


def test_its_shared_memory_holds_8_gib(container, root):
    shown = root.check_output("docker exec %s /busybox df -k /dev/shm", container)
    assert shown.splitlines()[-1].split()[1] == str(8 * 2**20)
