# SPDX-License-Identifier: GPL-3.0-or-later
"""Where SELinux is in force, what we write has its label, and what logins really get is told."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry

pytestmark = pytest.mark.host

ASKED = {"nofile": 65536, "memlock": "unlimited"}
POLICY = {
    "sessions": [{"users": ["alice"], "limits": ASKED}],
    "kernel": {"vm.max_map_count": 262144},
    "services": {"default": {"nofile": 65536}},
}
COMMAND = (
    "env -C /opt python3 -c 'import sys; from mlhost_limits.cli import main; main(sys.argv[1:])'"
)
WRITTEN = "/etc/security /etc/sysctl.d /etc/systemd"
RULES = re.compile(r"\(allow (\w+) (\w+) \(process \(rlimitinh\)\)\)")
# A job of the system's table; one of alice's own would need a context of hers.
JOB = "* * * * * alice ulimit -Sn > /tmp/of-cron 2>&1"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running("bookworm+selinux") as running:
        assert running.ssh("getenforce").stdout == "Enforcing\n"
        carry(running, {})
        yield running


def run(host: Host, *words: str) -> str:
    done = host.ssh(f"echo {shlex.quote(json.dumps(POLICY))} | {COMMAND} {shlex.join(words)}")
    return str(done.stdout)


def test_what_is_written_has_the_label_of_its_place(host: Host) -> None:
    shown = run(host, "provision", "--profile", "none", "--policy", "-")
    for path in ("limits.d/90-mlhost.conf", "sysctl.d/90-mlhost.conf", "conf.d/90-mlhost.conf"):
        assert path in shown
    assert host.ssh(f"restorecon -R -n -v {WRITTEN}").stdout == ""


def test_soft_limits_that_a_login_loses_are_told_and_mended(host: Host) -> None:
    """PAM sets them, and the shell is started in a domain that may not inherit them."""
    job = shlex.quote(JOB)
    host.ssh(f"echo {job} > /etc/cron.d/job; date --set=@$(( ($(date +%s) / 60 + 1) * 60 - 3 ))")
    login = "ulimit -Sn; ulimit -Hn; ulimit -Sl"
    assert host.ssh(login, user="alice").stdout == "1024\n65536\n8192\n"
    words = ("check", "--profile", "none", "--policy", "-", "--json")
    findings = json.loads(run(host, *words))["findings"]
    short = {(one["place"], one["item"], one["bound"], one["observed"]) for one in findings}
    places = [f"session:alice@{service}" for service in ("sshd", "cron", "login")]
    assert {(place, "nofile", "soft", "1024") for place in places} <= short
    assert ("session:alice@su", "nofile", "soft", "65536") in short
    causes = [cause for one in findings for cause in one["causes"]]
    assert {cause["code"] for cause in causes} == {"selinux-resets-soft-limits"}
    shown = host.ssh(f"{COMMAND} explain session:alice@sshd nofile").stdout
    assert re.search("SELinux +1024 +soft, the kernel's own: sshd_t passes none on", shown), shown
    assert wait_for_job(host) == "1024\n"
    commands = dict.fromkeys(
        shlex.join(words) for one in causes for words in one["remedy"]["commands"]
    )
    allowed = RULES.findall("\n".join(commands))
    assert {source for source, _target in allowed} == {"sshd_t", "crond_t", "local_login_t"}
    host.ssh("\n".join(commands), timeout=600)
    assert host.ssh(login, user="alice").stdout == "65536\n65536\nunlimited\n"
    findings = json.loads(run(host, *words))["findings"]
    assert {one["status"] for one in findings} == {"pass"}
    host.ssh("rm /tmp/of-cron; date --set=@$(( ($(date +%s) / 60 + 1) * 60 - 3 ))")
    assert wait_for_job(host) == "65536\n"


def wait_for_job(host: Host) -> str:
    return str(host.ssh("until [ -s /tmp/of-cron ]; do sleep 1; done; cat /tmp/of-cron").stdout)
