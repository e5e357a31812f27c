# SPDX-License-Identifier: GPL-3.0-or-later
"""The timer's service sees from its confinement what root sees, and bad input costs no metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from testinfra.host import Host

UNIT = "mlhost-limits-monitor"
FOLDER = "/var/lib/prometheus/node-exporter"
METRICS = f"{FOLDER}/mlhost-limits.prom"
POLICY = "/etc/mlhost-limits/monitor.json"
PROGRAM = "/usr/local/lib/mlhost-limits/mlhost-limits.pyz"
RUN = f"{PROGRAM} monitor --metrics {METRICS}"
LOOK = f"systemctl status {UNIT}.service {UNIT}.timer; journalctl -n 30 -u {UNIT}; ls -la {FOLDER}"
SAMPLE = re.compile(r'mlhost_limits_[a-z_]+(\{([a-z]+="([^"\\]|\\.)*",?)+\})? \S+')


@pytest.fixture(scope="module")
def good(root: Host) -> str:
    """Return the metrics of a good run."""
    root.check_output(f"{RUN} >/dev/null; cp -p {POLICY} /root/policy.json")
    return root.check_output(f"cat {METRICS}")


@pytest.fixture
def whole(root: Host, good: str) -> Iterator[str]:
    """Hold those metrics, and what a bad run left of the host put right again."""
    yield good
    root.run(f"cp -p /root/policy.json {POLICY}; umount {FOLDER}")


@pytest.mark.look(LOOK)
def test_the_timer_has_run_it_and_will_again(root: Host) -> None:
    assert root.run(f"systemctl is-enabled {UNIT}.timer").stdout.strip() == "enabled"
    root.check_output(
        f"timeout 100 sh -c 'until test -e {METRICS}; do sleep 1; done'"
        f" && while systemctl is-active {UNIT}.service | grep -q ing; do sleep 1; done"
    )
    shown = root.check_output(f"systemctl show -p Result,ExecMainStatus {UNIT}.service")
    assert shown.splitlines()[0] == "Result=success"
    assert "1h" in root.check_output(f"systemctl show -p TimersMonotonic {UNIT}.timer")
    assert root.file(METRICS).mode == 0o644
    lines = root.check_output(f"cat {METRICS}").splitlines()
    assert all(line.startswith("# ") or SAMPLE.fullmatch(line) for line in lines)
    assert "mlhost_limits_last_run_success 1" in lines
    written = root.check_output(f"ls {FOLDER}").split()  # The black box may be writing its own.
    assert set(written) <= {"mlhost-limits.prom", "mlhost-limits-black-box.prom"}


def read_states(root: Host, path: str) -> list[str]:
    """Return what is required, whether it is met, and why not; processes come and go."""
    text = root.check_output(f"grep -E 'requirement_(state|cause_info){{' {path}")
    return sorted(line for line in text.splitlines() if 'place="process:' not in line)


@pytest.mark.look(LOOK)
def test_the_confined_service_sees_what_root_sees(root: Host) -> None:
    root.check_output(f"systemctl start {UNIT}.service")
    root.run(f"{PROGRAM} monitor --metrics /root/free.prom")
    confined, free = (read_states(root, path) for path in (METRICS, "/root/free.prom"))
    assert confined == free
    seen = [line for line in free if line.endswith(" 1") and 'place="session:' in line]
    assert len(seen) >= 20
    assert not [line for line in seen if 'state="unknown"' in line and "@login" not in line]
    mode = root.check_output(f"systemctl show -p PrivateNetwork {UNIT}.service")
    assert mode == "PrivateNetwork=no"  # The policy names a sysctl of the network.
    exposure = root.check_output(f"systemd-analyze security {UNIT}.service | tail -n 1")
    print(exposure)
    assert float(re.findall(r"[0-9.]+", exposure)[-1]) <= 3


@pytest.mark.look(LOOK)
@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (f"truncate -s 100 {POLICY}", "monitor.json: is not JSON"),
        (f"rm {POLICY}", "No such file or directory"),
    ],
    ids=["truncated", "missing"],
)
def test_without_a_policy_the_unit_is_red_and_no_metric_is_old(
    root: Host, whole: str, harm: str, sentence: str
) -> None:
    root.check_output(harm)
    done = root.run(RUN)
    assert done.rc == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    metrics = root.check_output(f"cat {METRICS}")
    assert "mlhost_limits_last_run_success 0" in metrics.splitlines()
    assert "requirement" not in metrics
    assert read_success(metrics) == pytest.approx(read_success(whole), abs=600)
    assert root.run(f"systemctl start {UNIT}.service").rc != 0
    assert UNIT in root.check_output("systemctl --failed --no-legend")
    root.check_output(f"cp -p /root/policy.json {POLICY} && systemctl start {UNIT}.service")
    assert UNIT not in root.check_output("systemctl --failed --no-legend")


def read_success(metrics: str) -> float:
    name = "mlhost_limits_last_success_timestamp_seconds "
    (line,) = [line for line in metrics.splitlines() if line.startswith(name)]
    return float(line.split()[1])


@pytest.mark.look(LOOK)
@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (f"head -c 1m /dev/zero > {FOLDER}/others; true", "No space left"),
        (f"mount -o remount,ro {FOLDER}", "Read-only file system"),
    ],
    ids=["full disk", "read-only"],
)
@pytest.mark.usefixtures("whole")
def test_what_cannot_be_written_costs_no_metrics(root: Host, harm: str, sentence: str) -> None:
    before = root.check_output(f"cat {METRICS}")
    root.check_output(f"cp {METRICS} /root/whole && mount -t tmpfs -o size=64k none {FOLDER}")
    root.check_output(f"cp /root/whole {METRICS} && {{ {harm}; }}")
    done = root.run(RUN)
    assert done.rc == 2
    assert sentence in done.stderr
    assert "the old one stays as it is" in done.stderr
    assert root.check_output(f"cat {METRICS}") == before
    assert ".mlhost" not in root.check_output(f"ls -A {FOLDER}")


@pytest.mark.look(LOOK)
def test_two_at_once_take_turns(root: Host) -> None:
    two = root.check_output(f"({RUN} & {RUN} & wait) 2>&1 | grep -c ' pass, '").strip()
    assert two == "2"


@pytest.mark.look(LOOK)
def test_a_clock_that_jumps_makes_no_verdict_fresh(root: Host) -> None:
    """A prolog believes the last look by the time since boot, which nobody sets."""
    root.check_output(f"{RUN} > /dev/null")
    root.check_output("date -s +1year && date -s -1year")
    prolog = "env -i SLURM_JOB_ID=1 /usr/local/lib/mlhost-limits/node-health"
    before = root.check_output("cat /run/mlhost-limits/node.json")
    assert root.run(prolog).rc == 0
    assert root.check_output("cat /run/mlhost-limits/node.json") == before
    root.check_output('sed -i \'s/"at": [0-9.]*/"at": 999999999/\' /run/mlhost-limits/node.json')
    assert root.run(prolog).rc == 0
    assert "999999999" not in root.check_output("cat /run/mlhost-limits/node.json")
