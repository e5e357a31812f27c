"""A slurmd that does not come back gets its old limits back; a job that cannot run leaves nothing."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry

POLICY = {"jobs": {"slurm": {"limits": {"nofile": 200000, "memlock": "unlimited"}}}}
DROP_INS = "/etc/systemd/system/slurmd.service.d"
PROVISION = """
import json, sys
from mlhost_limits.schema import load_policy
from mlhost_limits.provision import ProvisionOptions, provision
policy = load_policy(json.load(open("/opt/policy.json")), "none")
options = ProvisionOptions(
    sections=("slurm",), switches={"slurm_restart": True, "slurm_conf": True}
)
try:
    print(json.dumps(provision(policy, options).as_result()))
except OSError as exc:
    sys.exit(str(exc))
"""
CHECK = "python3 -m mlhost_limits.cli check --profile none --policy /opt/policy.json --json"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Host]:
    with guest.running("bookworm+slurm") as host:
        carry(host)
        host.run("cp /etc/slurm/slurm.conf /root")
        host.run("cat > /opt/policy.json", input=json.dumps(POLICY))
        host.run("cat > /opt/provision.py", input=PROVISION)
        yield host


ADOPTS = """
sed -i 's,proctrack/linuxproc,proctrack/cgroup,; s,task/none,task/cgroup,' /etc/slurm/slurm.conf
printf '%s\\n' PrologFlags=Contain SelectTypeParameters=CR_Core_Memory >> /etc/slurm/slurm.conf
printf '%s\\n' ConstrainCores=yes ConstrainRAMSpace=yes > /etc/slurm/cgroup.conf
systemctl restart slurmctld slurmd && sleep 4
sed -i 's/^session.*pam_systemd/#&/' /etc/pam.d/common-session
sed -i '/@include common-account/a account required pam_slurm_adopt.so' /etc/pam.d/sshd
echo 'alice hard nofile 4096' > /etc/security/limits.d/95-vendor.conf
"""


def check(host: Host) -> list[dict[str, Any]]:
    done = host.run(f"cd /opt && PYTHONPATH=/opt {CHECK}", check=False, timeout=300)
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert host.run("squeue -h -o %j").stdout.strip() in ("", "wrap")
    return findings


def test_a_slurmd_that_does_not_come_back_runs_as_before(cluster: Host) -> None:
    """The unit starts only without our drop-in, so that its restart fails with it."""
    guard = f"[Service]\\nExecStartPre=/bin/sh -c '! test -e {DROP_INS}/90-mlhost-slurm.conf'\\n"
    cluster.run(f'mkdir -p {DROP_INS} && printf "{guard}" > {DROP_INS}/10-guard.conf')
    cluster.run("systemctl daemon-reload && systemctl restart slurmd")
    done = cluster.run("cd /opt && PYTHONPATH=/opt python3 provision.py", check=False, timeout=400)
    assert done.returncode == 1
    assert "slurmd.service did not restart" in done.stderr
    assert "every file was put back" in done.stderr
    assert cluster.run(f"ls {DROP_INS}").stdout.split() == ["10-guard.conf"]
    cluster.run("cmp /etc/slurm/slurm.conf /root/slurm.conf && systemctl is-active slurmd")
    cluster.run(f"rm {DROP_INS}/10-guard.conf && systemctl daemon-reload")


def test_a_slurm_conf_that_slurm_cannot_read_is_refused(cluster: Host) -> None:
    cluster.run("echo 'PropagateResourceLimits=memlock' >> /etc/slurm/slurm.conf")
    done = cluster.run("cd /opt && PYTHONPATH=/opt python3 provision.py 2>&1", check=False)
    cluster.run("cp /root/slurm.conf /etc/slurm/slurm.conf")
    assert done.returncode == 1
    assert "'memlock' is not a limit that Slurm knows" in done.stdout
    assert (
        f"{DROP_INS}/90-mlhost-slurm.conf"
        not in cluster.run("ls -d /etc/systemd/system/*/*").stdout
    )


def test_what_no_job_could_show_is_unknown_with_the_reason(cluster: Host) -> None:
    cluster.run("scontrol update nodename=$(hostname -s) state=drain reason='bad disk'")
    reasons = {one["reason"] for one in check(cluster) if one["status"] == "unknown"}
    cluster.run("scontrol update nodename=$(hostname -s) state=resume")
    assert reasons == {"no job was tried: node host is drained (bad disk)"}
    cluster.run("su alice -c 'cd /tmp && sbatch --ntasks=2 --wrap=\"sleep 300\"' && sleep 3")
    reasons = {one["reason"] for one in check(cluster) if one["status"] == "unknown"}
    cluster.ssh("scancel --user=alice")
    (reason,) = reasons
    assert reason.endswith("Requested nodes are busy")


def test_a_login_that_joins_a_job_is_judged_with_its_own_limits(cluster: Host) -> None:
    """The real login and the one that is opened to see are both in a job, with one limit."""
    cluster.run(ADOPTS)
    cluster.run("su alice -c 'cd /tmp && sbatch --mem=64M --wrap \"sleep 300\"' && sleep 4")
    login = cluster.ssh("cat /proc/self/cgroup; nproc; ulimit -Hn", user="alice").stdout.split()
    found = {f"{one['place']} {one['item']} {one['bound']}": one for one in check(cluster)}
    cluster.ssh("scancel --user=alice; cp /root/slurm.conf /etc/slurm/slurm.conf")
    assert "/job_" in login[0]
    assert login[1:] == ["1", "4096"]
    finding = found["job:slurm@ssh nofile hard"]
    assert (finding["status"], finding["observed"]) == ("fail", "4096")
    assert "; adopted into job " in finding["how"]
    (cause,) = finding["causes"]
    assert cause["at"]["file"] == "/etc/security/limits.d/95-vendor.conf"
