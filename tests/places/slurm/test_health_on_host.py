"""Slurm drains a node that falls short, with the cause as its reason, and has it back when mended."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry
from tests.oracle.record import EVERYTHING

POLICY = {"kernel": {"vm.max_map_count": 65530}}
HEALTH = "/usr/local/lib/mlhost-limits/node-health"
INSTALL = f"""
import sys
sys.path.insert(0, "/opt")
from mlhost_limits.verbs import MONITOR_ARGUMENTS, run_monitor
given = {{name: one.get("default") for name, one in MONITOR_ARGUMENTS.items()}}
given.update(profile="none", policy={POLICY!r}, interval="1h", textfile_directory="")
print(run_monitor(given, False))
"""
REASON = "mlhost-limits: kernel: vm.max_map_count 60000, required 65530"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Host]:
    with guest.running("bookworm+slurm") as host:
        carry(host)
        host.run("cat > /opt/install.py", input=INSTALL)
        assert "'changed': True" in host.run("python3 /opt/install.py", timeout=300).stdout
        assert "'changed': False" in host.run("python3 /opt/install.py", timeout=300).stdout
        host.run("cp /etc/slurm/slurm.conf /root")
        yield host


@pytest.fixture
def node(cluster: Host) -> Iterator[Host]:
    """Hold a node that is well, idle and not drained, and has no health check yet."""
    yield cluster
    cluster.run("sysctl -q -w vm.max_map_count=65530; rm -f /run/mlhost-limits/node.json")
    cluster.run("scontrol update nodename=host state=resume", check=False)
    set_up(cluster)


def set_up(host: Host, *lines: str) -> None:
    """Let Slurm know these lines besides its own."""
    text = "\n".join(lines)
    host.run(f"(cat /root/slurm.conf; echo '{text}') > /etc/slurm/slurm.conf")
    host.run("scontrol reconfigure && sleep 1")


def read_node(host: Host) -> tuple[str, str]:
    state, reason = host.run("sinfo -h -N -p debug -o '%T|%E'").stdout.strip().split("|")
    return state.rstrip("*"), reason


def wait_for(host: Host, wanted: str, seconds: float = 240) -> str:
    """Return the reason of the node once it is in a state."""
    deadline = time.monotonic() + seconds
    while True:
        state, reason = read_node(host)
        if state.startswith(wanted):
            return reason
        assert time.monotonic() < deadline, (state, reason, host.run("tail /var/log/slurm/*.log"))
        time.sleep(2)


def break_limit(host: Host) -> None:
    host.run("sysctl -q -w vm.max_map_count=60000")


def mend_limit(host: Host) -> None:
    host.run("sysctl -q -w vm.max_map_count=65530")


def wait_for_a_look(host: Host, seconds: float = 240) -> None:
    """Wait until slurmd has let the node be looked at again."""
    shown = "stat -c %Y.%i /run/mlhost-limits/node.json"
    before = host.run(shown, check=False).stdout
    deadline = time.monotonic() + seconds
    while host.run(shown, check=False).stdout in (before, ""):
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
    node.run("scontrol update nodename=host state=drain reason='bad disk'")
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
    node.run(f"env -i SLURMD_NODENAME=host {HEALTH}", check=False)
    assert read_node(node) == ("drained", REASON)
    node.run("scontrol update nodename=host state=drain reason='being looked at'")
    mend_limit(node)
    assert node.run(f"env -i SLURMD_NODENAME=host {HEALTH}").returncode == 0
    assert read_node(node) == ("drained", "being looked at")


def test_a_prolog_keeps_a_job_off_a_node_that_falls_short(node: Host) -> None:
    set_up(node, f"Prolog={HEALTH}", "PrologFlags=Alloc")
    job = "cd /tmp && srun --quiet --immediate=60 --time=1 --mem=64M echo it ran"
    assert "it ran" in node.ssh(job, user="alice", timeout=300).stdout
    kept = json.loads(node.run("cat /run/mlhost-limits/node.json").stdout)
    assert kept["status"] == "pass"
    assert "it ran" in node.ssh(job, user="alice", timeout=300).stdout
    again = json.loads(node.run("cat /run/mlhost-limits/node.json").stdout)
    assert again == kept  # The second one believed it.
    break_limit(node)
    # A look of the timer's that began before that would say otherwise.
    node.run("systemctl stop mlhost-limits-monitor; rm /run/mlhost-limits/node.json")
    done = node.ssh(job, user="alice", check=False, timeout=300)
    assert "it ran" not in done.stdout
    assert wait_for(node, "drain") == REASON
    node.ssh("scancel --user=alice", check=False)


@pytest.fixture
def policy(node: Host) -> Iterator[str]:
    """Hold the path of the policy, which a test may change."""
    node.run(f"cp {POLICY_FILE} /root/policy.json")
    yield POLICY_FILE
    node.run(f"cp /root/policy.json {POLICY_FILE}")


POLICY_FILE = "/etc/mlhost-limits/monitor.json"
RUN = f"env -i SLURMD_NODENAME=host {HEALTH}"
FAILED = "mlhost-limits: the check failed: "


def test_a_check_that_cannot_be_made_drains_nothing_and_says_why(node: Host, policy: str) -> None:
    set_up(node, f"Prolog={HEALTH}", "PrologFlags=Alloc")
    node.run(f"truncate -s 20 {policy}")
    done = node.run(RUN, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{FAILED}{policy}: is not JSON")
    job = "cd /tmp && srun --quiet --immediate=60 --time=1 --mem=64M echo it ran"
    assert "it ran" in node.ssh(job, user="alice", timeout=300).stdout
    assert read_node(node)[0] == "idle"


def test_it_drains_where_that_was_asked_for(node: Host, policy: str) -> None:
    node.run(f"sed 's/drain_on_error=False/drain_on_error=True/' {HEALTH} > /root/health")
    node.run(f"truncate -s 20 {policy}")
    done = node.run("env -i SLURMD_NODENAME=host python3 -I /root/health", check=False)
    assert done.returncode == 2
    state, reason = read_node(node)
    assert state == "drained"
    assert reason.startswith(f"{FAILED}{policy}: is not JSON")
    node.run(f"cp /root/policy.json {policy}")
    assert node.run(RUN).returncode == 0
    assert read_node(node)[0] == "idle"


LINES = [
    "ulimit -Sn 100; sleep 1000",
    "ulimit -Sn 100",
    "ulimit -Sn 100; echo mlhost-limits:; exit",
]


@pytest.mark.parametrize("line", LINES if EVERYTHING else LINES[:1])
def test_no_line_of_a_user_drains_a_node_or_gives_one_back(
    node: Host, policy: str, line: str
) -> None:
    asked = {**POLICY, "sessions": [{"users": ["alice"], "limits": {"nofile": {"soft": 1024}}}]}
    node.run(f"cat > {policy}", input=json.dumps(asked))
    node.ssh("cp .bashrc .bashrc.old; cat > .bashrc", user="alice", input=f"{line}\n")
    done = node.run(RUN, check=False, timeout=300)
    state = read_node(node)[0]
    node.run("echo '* soft nofile 512' > /etc/security/limits.d/95-low.conf")
    low = node.run(RUN, check=False, timeout=300)
    drained, reason = read_node(node)
    node.run(
        "mv /home/alice/.bashrc.old /home/alice/.bashrc; rm /etc/security/limits.d/95-low.conf"
    )
    assert (done.returncode, state) == (0, "idle"), done.stderr
    assert "the node is not drained: session:alice@" in done.stderr
    assert (low.returncode, drained) == (1, "drained")
    assert "nofile soft 512, required 1024" in reason
    assert node.run(RUN, timeout=300).returncode == 0
    assert read_node(node)[0] == "idle"
