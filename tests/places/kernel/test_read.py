# SPDX-License-Identifier: GPL-3.0-or-later
"""A running value is read under its own name, and what is no value is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.kernel.policy import normal_key
from mlhost_limits.kernel.read import read_sysctl, sysctl_path


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("fs.file-max", "/proc/sys/fs/file-max"),
        ("net.ipv4.conf.eth0/100.forwarding", "/proc/sys/net/ipv4/conf/eth0.100/forwarding"),
        (
            normal_key("net/ipv4/conf/eth0.100/forwarding"),
            "/proc/sys/net/ipv4/conf/eth0.100/forwarding",
        ),
    ],
)
def test_the_file_of_a_key(key: str, path: str) -> None:
    assert sysctl_path(key) == path


def test_a_value_is_read_without_its_line_end(tmp_path: Path) -> None:
    (tmp_path / "sys/net").mkdir(parents=True)
    (tmp_path / "sys/net/x").write_bytes(b"1\t2\t3\n")
    (tmp_path / "sys/net/y").write_bytes(b"\xff\n")
    assert read_sysctl("net.x", str(tmp_path)) == "1\t2\t3"
    assert read_sysctl("net.y", str(tmp_path)) == "\ufffd"


@pytest.mark.parametrize("key", ["net.no", "no.x", "net.x.y", "net.folder"])
def test_what_is_no_key_is_nothing(tmp_path: Path, key: str) -> None:
    (tmp_path / "sys/net/folder").mkdir(parents=True)
    (tmp_path / "sys/net/x").write_text("1\n")
    assert read_sysctl(key, str(tmp_path)) is None


def test_a_value_of_this_kernel_is_read() -> None:
    assert int(read_sysctl("fs.nr_open") or "") > 0
