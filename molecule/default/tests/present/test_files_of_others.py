# SPDX-License-Identifier: GPL-3.0-or-later
"""What others wrote before us stands as they wrote it, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.look(
    "cat -A /etc/docker/daemon.json",
    "cat -A /etc/security/limits.conf",
    "ls -la /etc/docker /etc/security /etc/security/limits.d /etc/sysctl.d",
)

SEEDS = Path(__file__).parents[2] / "files"


def test_limits_conf_is_untouched(root):
    file = root.file("/etc/security/limits.conf")
    assert file.content == (SEEDS / "limits.conf").read_bytes()
    assert file.mode == 0o640


def test_daemon_json_is_theirs_with_one_insertion(root):
    theirs = (SEEDS / "daemon.json").read_bytes()
    file = root.file("/etc/docker/daemon.json")
    content = file.content  # Each access is a login.
    added = len(content) - len(theirs)
    assert added > 0
    assert theirs in (content[:at] + content[at + added :] for at in range(len(theirs) + 1))
    assert file.mode == 0o600


def test_docker_still_runs_with_their_keys(root):
    shown = root.check_output("docker info -f '{{.Runtimes.nvidia.Path}} {{.Labels}}'")
    assert shown.startswith("/usr/bin/runc ")
    assert "proxy=http://fleet:s3cret-seed@proxy.example:3128" in shown


def test_nothing_else_of_ours_lies_about(root):
    ours = root.check_output("find /etc -name '*mlhost*' | sort").split()
    assert ours == ["/etc/security/limits.d/90-mlhost.conf", "/etc/sysctl.d/90-mlhost.conf"]
