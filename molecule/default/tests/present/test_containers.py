# SPDX-License-Identifier: GPL-3.0-or-later
"""A new container gets what the policy promises, whether one starts it or enters it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.look(
    "cat /etc/docker/daemon.json",
    "docker ps -a",
    "journalctl -b --no-pager -n 20 -u docker -u containerd",
)


def test_its_first_process_has_the_limits(container, root, read_limits):
    pid = root.check_output("docker inspect -f '{{.State.Pid}}' %s", container)
    seen = read_limits(root.check_output("cat /proc/%s/limits", pid))
    assert (seen.nofile, seen.memlock) == (("65536", "1048576"), ("unlimited", "unlimited"))


def test_what_enters_it_has_the_limits(container, root, read_limits):
    seen = read_limits(
        root.check_output("docker exec %s /busybox cat /proc/self/limits", container)
    )
    assert (seen.nofile, seen.memlock) == (("65536", "1048576"), ("unlimited", "unlimited"))


def test_its_shared_memory_holds_8_gib(container, root):
    shown = root.check_output("docker exec %s /busybox df -k /dev/shm", container)
    assert shown.splitlines()[-1].split()[1] == str(8 * 2**20)
