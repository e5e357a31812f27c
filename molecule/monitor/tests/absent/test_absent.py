# SPDX-License-Identifier: GPL-3.0-or-later
"""What was taken back leaves nothing."""

from __future__ import annotations

from testinfra.host import Host


def test_nothing_is_left(root: Host) -> None:
    assert root.run("systemctl list-unit-files --no-legend 'mlhost*'").stdout == ""
    assert root.run("systemctl list-units --all --no-legend 'mlhost*'").stdout == ""
    assert root.check_output("ls -A /var/lib/prometheus/node-exporter") == ""
    for folder in ("/usr/local/lib/mlhost-limits", "/etc/mlhost-limits"):
        assert not root.file(folder).exists
    left = "find /etc/systemd /usr/local -name '*mlhost*'"
    assert root.check_output(left) == ""
