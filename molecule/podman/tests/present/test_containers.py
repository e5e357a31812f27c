# SPDX-License-Identifier: GPL-3.0-or-later
"""A new container gets what the policy promises and what others state: root's, and bob's own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.look(
    "tail -n +1 /etc/containers/containers.conf.d/*",
    "podman info 2>&1 | tail -n 5",
)

SITE = Path(__file__).parents[2] / "files" / "10-site.conf"
SHOW = "/bin/busybox sh -c 'cat /proc/self/limits; df -k /dev/shm'"
RUN = "podman run --rm --network none --rootfs {} " + SHOW


@pytest.mark.parametrize(
    ("user", "folder"), [("root", "/srv/fs"), ("bob", "/home/bob/fs")], ids=["root", "rootless"]
)
def test_a_new_container(user, folder, root, read_limits):
    command = RUN.format(folder)
    shown = root.check_output(command if user == "root" else f'su - bob -c "{command}"')
    assert read_limits(shown) == (("65536", "1048576"), ("unlimited", "unlimited"))
    assert shown.splitlines()[-1].split()[1] == str(2**20)
    assert "Max core file size        0                    0" in shown


def test_what_pods_inherit(root):
    unit = root.check_output("systemctl show -P LimitNOFILE -P LimitMEMLOCK containerd")
    assert unit.split() == ["1048576", "infinity"]


def test_the_file_of_others_is_untouched(root):
    file = root.file("/etc/containers/containers.conf.d/10-site.conf")
    assert file.content == SITE.read_bytes()
