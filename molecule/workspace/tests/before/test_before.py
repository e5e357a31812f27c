# SPDX-License-Identifier: GPL-3.0-or-later
"""In check mode the first run on a bare host changes nothing."""

from __future__ import annotations

from testinfra.host import Host


def test_nothing_was_changed(root: Host) -> None:
    assert root.run("cmp /etc/fstab /root/fstab").rc == 0
    assert root.check_output("find /etc -name '*mlhost*'") == ""
    assert not root.file("/scratch").exists
    assert not root.file("/srv/embeddings").exists
