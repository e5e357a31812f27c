# SPDX-License-Identifier: GPL-3.0-or-later
"""A line that sets a sysctl at boot is found in whatever runs then, and only there."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel.boot_scripts import find_called, find_script_writes

KEY = "vm.max_map_count"
RC, UNIT, CRON = "/etc/rc.local", "/etc/systemd/system/x.service", "/etc/cron.d/x"
CRONTAB = "/var/spool/cron/crontabs/root"


@pytest.mark.parametrize(
    ("path", "line", "expected"),
    [
        (RC, f"sysctl -w {KEY}=7", ["7"]),
        (RC, f"/sbin/sysctl -q -w {KEY}=7 >/dev/null", ["7"]),
        (RC, f'sysctl "{KEY} = 7"', ["7"]),
        (RC, f"sysctl -w vm.swappiness=1 {KEY}=7", ["7"]),
        (RC, "sysctl -w vm/max_map_count=7", ["7"]),
        (RC, f"sysctl -w {KEY}=$N", [""]),
        (RC, f"sysctl -w {KEY}s=7", []),
        (RC, f"sysctl -w x.{KEY}=7", []),
        (RC, f"  # sysctl -w {KEY}=7", []),
        (RC, f"sysctl -n {KEY}", []),
        (RC, "echo 7 > /proc/sys/vm/max_map_count", ["7"]),
        (RC, "echo -n '7'>/proc/sys/vm/max_map_count", ["7"]),
        (RC, "echo 7 | sudo tee /proc/sys/vm/max_map_count", ["7"]),
        (RC, "echo 7 > /proc/sys/vm/max_map_count_x", []),
        (RC, "cat /proc/sys/vm/max_map_count", []),
        (UNIT, f"ExecStart=/sbin/sysctl -w {KEY}=7", ["7"]),
        (UNIT, f"ExecStartPre=-/bin/sh -c 'sysctl {KEY}=7'", ["7"]),
        (UNIT, f"ExecStop=/sbin/sysctl -w {KEY}=7", []),
        (UNIT, f"Description=sysctl {KEY}=7", []),
        (CRON, f"@reboot root sysctl -w {KEY}=7", ["7"]),
        (CRON, f"*/5 * * * * root sysctl -w {KEY}=7", ["7"]),
        (CRONTAB, f"@reboot sysctl -w {KEY}=7", ["7"]),
    ],
)
def test_lines_that_set_a_key(path: str, line: str, expected: list[str]) -> None:
    writes = list(find_script_writes(KEY, {path: f"#!/bin/sh\n{line}\n"}))
    assert [write.at.value for write in writes] == expected
    assert all(write.at.line == 2 and write.matched in line for write in writes)


@pytest.mark.parametrize(
    ("line", "loads"),
    [
        ("sysctl -p", True),
        ("sysctl -q --system", True),
        ("/sbin/sysctl --load=/etc/x.conf", True),
        ("sysctl -ep /etc/sysctl.d/x.conf", True),
        ("sysctl -a | grep -p x", False),
        ("sysctl vm.swappiness", False),
    ],
)
def test_lines_that_have_files_read(line: str, loads: bool) -> None:
    assert [write.loads for write in find_script_writes(KEY, {RC: line})] == [True] * loads


def test_scripts_that_lines_call() -> None:
    text = "[Service]\nEnvironmentFile=/etc/x\nExecStart=/usr/local/bin/tune --fast /usr/bin/x\n"
    assert find_called(UNIT, text) == ["/usr/local/bin/tune"]
    assert find_called(RC, "/opt/a/b.sh; sh /srv/c") == ["/opt/a/b.sh", "/srv/c"]
