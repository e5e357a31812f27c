# SPDX-License-Identifier: GPL-3.0-or-later
"""What was taken back leaves nothing, and fstab is what it was to the byte."""

from __future__ import annotations

import pytest
from testinfra.host import Host

pytestmark = pytest.mark.look("cat /etc/fstab; findmnt; ls -la /scratch /srv")


def test_files_are_as_they_were(root: Host) -> None:
    assert root.run("cmp /etc/fstab /root/fstab").rc == 0
    assert root.check_output("find /etc -name '*mlhost*'") == ""


@pytest.mark.parametrize("path", ["/scratch/cache", "/srv/embeddings"])
def test_an_empty_directory_is_gone(path: str, root: Host) -> None:
    assert not root.file(path).exists


def test_a_login_has_no_variables(root: Host) -> None:
    assert root.check_output("su -l alice -c 'echo \"[$WIDS_CACHE]\"'") == "[]"
