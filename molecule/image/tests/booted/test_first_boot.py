# SPDX-License-Identifier: GPL-3.0-or-later
"""The first boot of an image keeps the policy, without another run, and says so by itself."""

from __future__ import annotations

import json

import pytest

from tests.host import guest, library

pytestmark = pytest.mark.look(
    "tail -n +1 /etc/security/limits.d/* /etc/docker/daemon.json /etc/sysctl.d/90*",
    "journalctl -b --no-pager -n 40 -u mlhost-limits-first-boot -u docker",
)

FILES = (
    "/etc/security/limits.d/90-mlhost.conf",
    "/etc/sysctl.d/90-mlhost.conf",
    "/etc/docker/daemon.json",
)
PROVISION = """
import json
from mlhost_limits.verbs import PROVISION_ARGUMENTS, run_provision
given = {name: entry.get("default") for name, entry in PROVISION_ARGUMENTS.items()}
print(json.dumps(run_provision(given, {check_mode})))
"""


@pytest.mark.parametrize(
    "way",
    [f"{user}@{service}" for service in ("sshd", "su", "sudo", "cron") for user in ("root", "bob")],
)
def test_a_session_has_what_the_policy_promises(way, measure):
    seen = measure(way)
    assert (seen.nofile, seen.memlock) == (("65536", "1048576"), ("unlimited", "unlimited"))


def test_a_container_has_what_the_policy_promises(contained):
    assert (contained.nofile, contained.memlock) == (
        ("65536", "1048576"),
        ("unlimited", "unlimited"),
    )


def test_the_kernel_has_what_the_policy_promises(kernel):
    assert kernel["vm.max_map_count"] >= 262144
    assert kernel["fs.nr_open"] >= 1048576
    assert kernel["fs.file-max"] >= 2097152


def test_the_first_boot_was_checked_once_and_is_green(root):
    waited = "for _ in $(seq 240); do test -e {0} && break; sleep 1; done; cat {0}"
    text = root.check_output(waited.format("/var/lib/mlhost-limits/first-boot.json"))
    found = json.loads(text)
    counts = found["summary"]
    assert (counts["fail"], counts["unknown"]) == (0, 0), found["report"]
    assert counts["pass"] > 40
    shown = root.check_output("systemctl show -P Result -P ActiveState mlhost-limits-first-boot")
    assert shown.split() in (["success", "inactive"], ["inactive", "success"])


def test_a_booted_host_gets_the_same_files_byte_for_byte(root):
    with guest.running() as other:
        library.carry(other)
        done = other.ssh(
            "PYTHONPATH=/opt python3 -", input=PROVISION.replace("{check_mode}", "False")
        )
        assert json.loads(done.stdout)["failed"] is False, done.stdout
        for path in FILES:
            assert (
                root.check_output(f"sha256sum {path}")
                == other.ssh(f"sha256sum {path}").stdout.strip()
            )


def test_another_run_would_change_nothing(ansible):
    done = ansible.ansible("mlhost.limits.provision", check=True)
    assert done["changed"] is False, done
