# SPDX-License-Identifier: GPL-3.0-or-later
"""What nobody uses any more goes, by the timer of systemd; what is new stays."""

from __future__ import annotations

import pytest
from testinfra.host import Host

DISK = "/srv/embeddings"


@pytest.mark.look("cat /etc/tmpfiles.d/90-mlhost.conf; ls -laR /srv/embeddings")
def test_old_files_go_and_new_ones_stay(root: Host) -> None:
    left = root.check_output(
        f"cd {DISK} && mkdir job && touch job/old.pt && sleep 11 && touch new.pt"
        " && systemctl start systemd-tmpfiles-clean.service && find . && rm new.pt"
    )
    assert left.split() == [".", "./new.pt"]
    assert root.service("systemd-tmpfiles-clean.timer").is_running
