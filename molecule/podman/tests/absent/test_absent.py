# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent, what others state counts again, and nothing of ours is left."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.look("tail -n +1 /etc/containers/containers.conf.d/*")

RUN = "podman run --rm --network none --rootfs /srv/fs /bin/busybox cat /proc/self/limits"


def test_a_new_container_has_what_others_state(root, read_limits):
    assert read_limits(root.check_output(RUN)).nofile == ("1024", "4096")


def test_nothing_of_ours_is_left(root):
    left = root.check_output(
        "find /etc/containers /etc/systemd /var/tmp -name '*mlhost*' -o -name '*canary*'"
    )
    assert left == ""
