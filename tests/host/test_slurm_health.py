"""Slurm drains a node that falls short, with the cause as its reason, and has it back when mended."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry

START = Path(__file__).with_name("start_slurm.sh")
POLICY = {"kernel": {"vm.max_map_count": 65530}}
HEALTH = "/usr/local/lib/mlhost-limits/node-health"
INSTALL = f"""
import sys
sys.path.insert(0, "/opt")
from mlhost_limits.verbs import run_monitor
given = {{"profile": "none", "policy": {POLICY!r}, "state": "present", "interval": "1h",
         "textfile_directory": "", "canary": "never", "first_boot": False}}
print(run_monitor(given, False))
"""
REASON = "mlhost-limits: kernel: vm.max_map_count 60000, required 65530"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Host]:
    with guest.running("bookworm+slurm") as host:
        carry(host, {"start_slurm.sh": START})
        host.ssh("cat > /opt/install.py", input=INSTALL)
        assert "'changed': True" in host.ssh("python3 /opt/install.py", timeout=300).stdout
        assert "'changed': False" in host.ssh("python3 /opt/install.py", timeout=300).stdout
        host.ssh("sh /opt/start_slurm.sh && cp /etc/slurm/slurm.conf /root", timeout=600)
        yield host


@pytest.fixture
def node(cluster: Host) -> Iterator[Host]:
    """Hold a node that is well, idle and not drained, and has no health check yet."""
    yield cluster
    cluster.ssh("sysctl -q -w vm.max_map_count=65530; rm -f /run/mlhost-limits/node.json")
    cluster.ssh("scontrol update nodename=host state=resume", check=False)
    set_up(cluster)


def set_up(host: Host, *lines: str) -> None:
    """Let Slurm know these lines besides its own."""
    text = "\n".join(lines)
    host.ssh(f"(cat /root/slurm.conf; echo '{text}') > /etc/slurm/slurm.conf")
    host.ssh("scontrol reconfigure && sleep 1")


def read_node(host: Host) -> tuple[str, str]:
    state, reason = host.ssh("sinfo -h -N -p debug -o '%T|%E'").stdout.strip().split("|")
    return state.rstrip("*"), reason


def wait_for(host: Host, wanted: str, seconds: float = 240) -> str:
    """Return the reason of the node once it is in a state."""
    deadline = time.monotonic() + seconds
    while True:
        state, reason = read_node(host)
        if state.startswith(wanted):
            return reason
        assert time.monotonic() < deadline, (state, reason, host.ssh("tail /var/log/slurm/*.log"))
        time.sleep(2)


def break_limit(host: Host) -> None:
    host.ssh("sysctl -q -w vm.max_map_count=60000")


def mend_limit(host: Host) -> None:
    host.ssh("sysctl -q -w vm.max_map_count=65530")


def wait_for_a_look(host: Host, seconds: float = 240) -> None:
    """Wait until slurmd has let the node be looked at again."""
    shown = "stat -c %Y.%i /run/mlhost-limits/node.json"
    before = host.ssh(shown, check=False).stdout
    deadline = time.monotonic() + seconds
    while host.ssh(shown, check=False).stdout in (before, ""):
        assert time.monotonic() < deadline
        time.sleep(2)


HEALTH_CHECK = (
    f"HealthCheckProgram={HEALTH}",
    "HealthCheckInterval=10",
    "HealthCheckNodeState=ANY",
)


def test_a_node_drains_with_the_cause_and_comes_back_when_it_is_mended(node: Host) -> None:
    set_up(node, *HEALTH_CHECK)
    break_limit(node)
    assert wait_for(node, "drain") == REASON
    mend_limit(node)
    wait_for(node, "idle")


def test_a_node_that_an_admin_drained_stays_drained(node: Host) -> None:
    node.ssh("scontrol update nodename=host state=drain reason='bad disk'")
    set_up(node, *HEALTH_CHECK)
    break_limit(node)
    wait_for_a_look(node)
    assert read_node(node) == ("drained", "bad disk")
    mend_limit(node)
    wait_for_a_look(node)
    wait_for_a_look(node)
    assert read_node(node) == ("drained", "bad disk")


def test_a_reason_that_an_admin_changed_is_the_admins(node: Host) -> None:
    break_limit(node)
    node.ssh(f"env -i SLURMD_NODENAME=host {HEALTH}", check=False)
    assert read_node(node) == ("drained", REASON)
    node.ssh("scontrol update nodename=host state=drain reason='being looked at'")
    mend_limit(node)
    assert node.ssh(f"env -i SLURMD_NODENAME=host {HEALTH}").returncode == 0
    assert read_node(node) == ("drained", "being looked at")


def test_a_prolog_keeps_a_job_off_a_node_that_falls_short(node: Host) -> None:
    set_up(node, f"Prolog={HEALTH}", "PrologFlags=Alloc")
    job = "cd /tmp && srun --quiet --immediate=60 --time=1 --mem=64M echo it ran"
    assert "it ran" in node.ssh(job, user="alice", timeout=300).stdout
    kept = json.loads(node.ssh("cat /run/mlhost-limits/node.json").stdout)
    assert kept["status"] == "pass"
    assert "it ran" in node.ssh(job, user="alice", timeout=300).stdout
    again = json.loads(node.ssh("cat /run/mlhost-limits/node.json").stdout)
    assert again == kept  # The second one believed it.
    node.ssh("rm /run/mlhost-limits/node.json")
    break_limit(node)
    done = node.ssh(job, user="alice", check=False, timeout=300)
    assert "it ran" not in done.stdout
    assert wait_for(node, "drain") == REASON
    node.ssh("scancel --user=alice", check=False)


def test_a_check_that_cannot_be_made_drains_and_says_why(node: Host) -> None:
    policy = "/etc/mlhost-limits/monitor.json"
    node.ssh(f"cp {policy} /root/policy.json && truncate -s 20 {policy}")
    done = node.ssh(f"env -i SLURMD_NODENAME=host {HEALTH}", check=False)
    state, reason = read_node(node)
    node.ssh(f"cp /root/policy.json {policy}")
    assert done.returncode == 2
    assert state == "drained"
    assert reason.startswith(f"mlhost-limits: the check itself failed: {policy}: is no JSON")
    assert node.ssh(f"env -i SLURMD_NODENAME=host {HEALTH}").returncode == 0
    assert read_node(node)[0] == "idle"
