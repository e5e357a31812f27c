# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent services have the stock limits again, and none of our files is left."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.look(
    "tail -n +1 $(find /etc/systemd -name '*.conf' -path '*.d/*')",
    "journalctl -b --no-pager -n 30 -t systemd",
)


@pytest.mark.parametrize(
    ("unit", "nofile"),
    [("trainer.service", ["512", "512"]), ("worker@1.service", ["1024", "524288"])],
)
def test_a_service_that_was_restarted_has_what_it_had(unit, nofile, root):
    pid = root.check_output("systemctl show -P MainPID %s", unit)
    row = root.check_output("grep files /proc/%s/limits", pid)
    assert row.split()[3:5] == nofile


def test_a_new_service_has_the_stock_limits(root):
    limits = root.check_output("systemd-run --quiet --pipe --wait --collect cat /proc/self/limits")
    assert limits == root.check_output("cat /root/limits")
    assert "Max open files            1024                 524288 " in limits


def test_logind_removes_shared_memory_again(leaves_shared_memory):
    assert not leaves_shared_memory()


def test_nothing_of_ours_is_left_in_etc(root):
    assert root.check_output("grep -rl mlhost /etc; find /etc -name '*mlhost*'") == ""
    folders = root.check_output("find /etc/systemd -type d -name '*.d'")
    assert folders == "/etc/systemd/system/trainer.service.d"


def test_the_file_of_somebody_else_is_as_it_was(root):
    file = root.file("/etc/systemd/system/trainer.service.d/50-site.conf")
    assert file.content == b"[Service]\nLimitNOFILE=512\nNice=1"
