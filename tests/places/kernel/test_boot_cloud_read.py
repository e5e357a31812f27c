# SPDX-License-Identifier: GPL-3.0-or-later
"""What is packed in a seed of cloud-init counts where it is about what is looked for."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import pytest
from mlhost_limits.kernel.boot_cloud_read import list_seeds, unpack
from mlhost_limits.kernel.boot_scripts import is_about_sysctls
from mlhost_limits.kernel.boot_units import list_unread

SEED = "/var/lib/cloud/seed/nocloud/user-data"
SCRIPT = b"#!/bin/sh\nsysctl -w vm.max_map_count=1\n"
LONG = b"#!/bin/sh\n" + b"# a comment\n" * 20 + SCRIPT


def pack(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        (f"content: {pack(SCRIPT)}\n", {1}),
        (f"a: b\n- content: '{pack(SCRIPT)}'\n", {2}),
        (f"a: b\ncontent: {pack(gzip.compress(SCRIPT, mtime=0))}\n", {2}),
        (f"MIME\n\n{base64.encodebytes(LONG).decode()}\n--end\n", {3}),
        (f"path: /etc/sysctl.d/a.conf\ncontent: {pack(b'vm.max_map_count = 1')}\n", {2}),
        (f"path: /etc/motd\ncontent: {pack(b'vm.max_map_count = 1')}\n", set()),
        (f"path: /etc/sysctl.d/a.conf\ncontent: {pack(b'nothing of that kind')}\n", set()),
        ("runcmd:\n- aVeryLongWordWithoutASpaceInIt1\n", set()),
        (f"content: {pack(gzip.compress(SCRIPT, mtime=0)[:20])}\n", set()),
    ],
)
def test_lines_that_hold_what_counts_are_not_read(text: str, unread: set[int]) -> None:
    assert list_unread(unpack(SEED, text, is_about_sysctls)) == unread
    assert list_unread(unpack("/etc/rc.local", text, is_about_sysctls)) == set()


def test_a_seed_that_is_packed_as_a_whole_is_read() -> None:
    packed = gzip.compress(SCRIPT, mtime=0)
    assert unpack(SEED, packed.decode("latin-1"), is_about_sysctls) == SCRIPT.decode()
    damaged = unpack(SEED, packed[:2].decode("latin-1") + "x" * 30, is_about_sysctls)
    assert (damaged, list_unread(damaged)) == ("", {1})


def test_seeds_of_every_kind_are_found(tmp_path: Path) -> None:
    names = ("nocloud/user-data", "nocloud-net/vendor-data", "config_drive/openstack/1/user_data")
    for name in (*names, "nocloud/meta-data", "ec2/other"):
        file = tmp_path / "var/lib/cloud/seed" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    found = {one.replace("/var/lib/cloud/seed/", "") for one in list_seeds(str(tmp_path))}
    assert found == set(names)
