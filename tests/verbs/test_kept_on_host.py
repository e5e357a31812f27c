# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible brings the library to a target once, and never runs one that others might have changed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.host import guest
from tests.host.connection import Host

pytestmark = pytest.mark.host
KEPT = "/run/mlhost-limits/library"
POLICY = {"profile": "none", "policy": {"kernel": {"fs.file-max": 1000}}}


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running(new=True) as host:
        yield host


def check(host: Host, *words: str) -> str:
    """Run an ad-hoc check and return what Ansible prints."""
    done = subprocess.run(
        ["ansible", "all", "-i", str(host.inventory), "-m", "mlhost.limits.check"]
        + ["-a", json.dumps(POLICY), *words],
        env={**os.environ, "ANSIBLE_PIPELINING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 requirement is met" in done.stdout
    return done.stdout


def list_kept(host: Host) -> str:
    return host.run(f"stat -c '%n %a %U %i' {KEPT}/* 2>&1 || :").stdout


def test_check_mode_and_whoever_wants_none_leave_nothing(host: Host) -> None:
    check(host, "--check")
    check(host, "-e", "mlhost_limits_keep_library=false")
    assert "No such file" in list_kept(host)


def test_the_second_run_uses_what_the_first_left(host: Host) -> None:
    check(host)
    first = list_kept(host)
    assert len(first.splitlines()) == 1
    assert " 700 root " in first
    host.run(f"echo 'raise OSError(\"it is the kept one\")' >> {KEPT}/*/mlhost_limits/verbs.py")
    with pytest.raises(AssertionError, match="it is the kept one"):
        check(host)
    assert list_kept(host) == first


def test_one_that_others_might_have_changed_is_not_run(host: Host) -> None:
    host.run(f"chmod 777 {KEPT}/*/mlhost_limits")
    check(host)


def test_after_a_boot_it_is_brought_again(host: Host) -> None:
    host.run("rm -r /run/mlhost-limits")
    check(host)
    assert len(list_kept(host).splitlines()) == 1
