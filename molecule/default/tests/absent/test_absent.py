# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the host is as it was: stock limits, the files of others, none of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.look(
    "tail -n +1 /etc/security/limits.conf /etc/security/limits.d/* /etc/docker/daemon.json",
    "ls -la /etc/docker /etc/security/limits.d /etc/sysctl.d",
    "journalctl -b --no-pager -n 20 -t sshd -u docker",
)

SEEDS = Path(__file__).parents[2] / "files"


@pytest.fixture(scope="module")
def before(root, read_limits):
    """Return what a login got before anything was provisioned."""
    return read_limits(root.file("/root/proc/self/limits").content_string)


@pytest.mark.parametrize("user", ["root", "bob"])
@pytest.mark.parametrize("service", ["sshd", "su", "sudo"])
def test_a_session_has_the_stock_limits(user, service, measure, before):
    seen = measure(f"{user}@{service}")
    assert seen == before
    assert seen.nofile.soft == "1024"


def test_a_new_container_has_the_stock_limits(contained, container, root, read_limits):
    assert contained == read_limits(root.file("/root/container").content_string)
    shown = root.check_output("docker exec %s /busybox df -k /dev/shm", container)
    assert shown.splitlines()[-1].split()[1] == str(64 * 2**10)


@pytest.mark.parametrize(
    ("path", "mode"), [("/etc/security/limits.conf", 0o640), ("/etc/docker/daemon.json", 0o600)]
)
def test_a_file_of_others_is_the_original(path, mode, root):
    file = root.file(path)
    assert file.content == (SEEDS / Path(path).name).read_bytes()
    assert file.mode == mode


def test_nothing_of_ours_is_left_in_etc(root):
    assert root.check_output("grep -rl mlhost /etc; find /etc -name '*mlhost*'") == ""


def test_a_second_run_would_change_nothing(ansible):
    result = ansible.ansible("mlhost.limits.provision", json.dumps({"state": "absent"}))
    assert (result["files"], result["restarted"], result["changed"]) == ([], [], False)


def test_check_says_so(ansible, before):
    """What fails is exactly what the profile asks and stock does not give."""
    wanted = {"users": ["bob"], "services": ["sshd"], "sections": ["sessions"]}
    result = ansible.ansible("mlhost.limits.check", json.dumps(wanted), check=False)
    short = {
        (finding["item"], finding["bound"])
        for finding in result["findings"]
        if finding["status"] == "fail"
    }
    expected = {("nofile", "soft"), ("memlock", "soft"), ("memlock", "hard")}
    if int(before.nofile.hard) < 1048576:  # As from Debian 13 on.
        expected.add(("nofile", "hard"))
    assert short == expected
