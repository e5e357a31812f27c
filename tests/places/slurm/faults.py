# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of slurm.conf(5) and of slurmd, shown by a job of an ordinary user."""

from __future__ import annotations

from tests.faults.base import JOBS
from tests.faults.fault import Culprit, Fault, Policy, append, merge_policies, write

CONF = "/etc/slurm/slurm.conf"
DROP_INS = "/etc/systemd/system/slurmd.service.d"
READ = "scontrol reconfigure"
RESTART = "systemctl daemon-reload; systemctl restart slurmd; sleep 3"
SOFT = (r"^job:slurm nofile soft",)
BOTH = (r"^job:slurm memlock soft", r"^job:slurm memlock hard")
FORGET = f"sed -i '/^# BEGIN mlhost/,/^# END mlhost/d' {CONF}"
PAM = write("/etc/pam.d/slurm", "auth required pam_permit.so", "account required pam_permit.so",
            "session required pam_limits.so")  # fmt: skip
ELSEWHERE = "/usr/local/sbin/elsewhere"
STACK: Policy = {"jobs": {"slurm": {"limits": {"stack": "unlimited"}}}}
SIZE: Policy = {"jobs": {"slurm": {"memory": "200MiB", "cpus": 2}}}
CGROUP_CONF = "/etc/slurm/cgroup.conf"
# As the manuals of Slurm have it: jobs in cgroups of their own, and a step for what is adopted.
CONFINED = (
    "sed -i 's,proctrack/linuxproc,proctrack/cgroup,; s,task/none,task/cgroup,' "
    + CONF
    + f"; echo SelectTypeParameters=CR_Core_Memory >> {CONF}; {write(CGROUP_CONF, 'ConstrainRAMSpace=yes')}"
)
RESTART_BOTH = "systemctl restart slurmctld slurmd; sleep 4"
ADOPT = "sed -i '/@include common-account/a account required pam_slurm_adopt.so' /etc/pam.d/sshd"
LOGINS = write(
    "/etc/security/limits.d/91-jobs.conf", "alice soft nofile 131072", "alice - memlock unlimited"
)
AT_LOGIN = (r"^job:slurm@ssh nofile hard",)
STRICT: Policy = merge_policies(JOBS, {"jobs": {"slurm": {"propagate": "none"}}})


def slurm(
    name: str, make: str, culprit: Culprit, shows: tuple[str, ...], policy: Policy = JOBS
) -> Fault:
    """Return a fault of the cluster of one node."""
    return Fault(f"slurm: {name}", make, (culprit,), shows, policy, extra="slurm")


FAULTS = [
    slurm("nobody keeps logins from deciding", f"{FORGET}; {READ}",
          Culprit(CONF, words="login|propagat|take over"), SOFT),
    slurm("all limits of logins are taken over",
          f"{FORGET}; {append(CONF, 'PropagateResourceLimits=ALL')}; {READ}",
          Culprit(CONF, "PropagateResourceLimits=ALL", "take over|propagat"), SOFT),
    slurm("a list that names the limit",
          f"{FORGET}; {append(CONF, 'propagateresourcelimits = CORE,RLIMIT_NOFILE # sizes')}; {READ}",
          Culprit(CONF, "propagateresourcelimits", "take over|propagat"), SOFT),
    slurm("a later line that leaves the limit out",
          f"{append(CONF, 'PropagateResourceLimitsExcept=MEMLOCK # one')}; {READ}",
          Culprit(CONF, "Except=MEMLOCK # one", "leaves|lacks"), SOFT),
    slurm("a line of an included file",
          f"{write('/etc/slurm/site.conf', '', 'PropagateResourceLimitsExcept=CORE')};"
          f" {append(CONF, 'Include site.conf')}; {READ}",
          Culprit("/etc/slurm/site.conf", "PropagateResourceLimitsExcept=CORE"), SOFT),
    slurm("a drop-in of slurmd",
          f"{write(f'{DROP_INS}/95-low.conf', '[Service]', 'LimitMEMLOCK=64K')}; {RESTART}",
          Culprit(f"{DROP_INS}/95-low.conf", "LimitMEMLOCK=64K"), BOTH),
    slurm("slurmd was not restarted since it was put right",
          f"{write(f'{DROP_INS}/95-low.conf', '[Service]', 'LimitMEMLOCK=64K')}; {RESTART};"
          f" rm {DROP_INS}/95-low.conf; systemctl daemon-reload",
          Culprit(words="restart|has run since|older"), BOTH),
    slurm("slurmd was started by hand",
          "systemctl stop slurmd; (ulimit -l 64; setsid slurmd > /dev/null 2>&1 < /dev/null &); sleep 4",
          Culprit(words="by hand|not started by"), BOTH),
    slurm("slurmd was changed while it runs",
          "prlimit --pid $(systemctl show -P MainPID slurmd) --memlock=65536:65536",
          Culprit(words="hand|prlimit|changed|now"), BOTH),
    slurm("jobs go through PAM",
          f"{write('/etc/pam.d/slurm', 'auth required pam_permit.so', 'account required pam_permit.so', 'session required pam_limits.so')};"
          f" {append(CONF, 'UsePAM=1')}; {READ}",
          Culprit(CONF, words="PAM"), SOFT),
    slurm("slurm.conf was put right and not read",
          append(CONF, "PropagateResourceLimitsExcept=ALL"),
          Culprit(words="not read"), (r"^job:slurm propagate",), STRICT),
    slurm("a job that has run since before slurmd was put right",
          f"{write(f'{DROP_INS}/95-low.conf', '[Service]', 'LimitMEMLOCK=64K')}; {RESTART};"
          " cd /tmp; su alice -c 'sbatch -o /dev/null --wrap \"sleep 900\"'; sleep 5;"
          f" rm {DROP_INS}/95-low.conf; {RESTART}",
          Culprit(words="older|keeps"), (r"^job:slurm/\d+\.batch memlock hard",))
    ._replace(person="scancel --user alice; sleep 3"),
    slurm("jobs go through PAM, which starts over",
          f"{FORGET}; {append(CONF, 'UsePAM=1', 'PropagateResourceLimitsExcept=NOFILE,MEMLOCK,STACK')};"
          f" {PAM}; {READ}",
          Culprit(CONF, words="PAM"), (r"^job:slurm stack soft",), STACK),
    slurm("a unit that bounds the memory of jobs",
          f"{write(f'{DROP_INS}/95-memory.conf', '[Service]', 'MemoryMax=150M')};"
          " systemctl daemon-reload",
          Culprit(f"{DROP_INS}/95-memory.conf", "MemoryMax=150M"), (r"^job:slurm memory",), SIZE),
    slurm("slurmd may run on one CPU",
          f"{write(f'{DROP_INS}/95-cpus.conf', '[Service]', 'CPUAffinity=1')}; {RESTART}",
          Culprit(f"{DROP_INS}/95-cpus.conf", "CPUAffinity=1"), (r"^job:slurm cpus",), SIZE),
    slurm("cgroup.conf gives half of the memory",
          f"{CONFINED}; {write(CGROUP_CONF, 'ConstrainRAMSpace=yes', 'AllowedRAMSpace=50')};"
          f" {RESTART_BOTH}",
          Culprit(CGROUP_CONF, "AllowedRAMSpace=50"), (r"^job:slurm memory",), SIZE),
    slurm("cgroup.conf was put right and not read",
          f"{CONFINED}; {write(CGROUP_CONF, 'ConstrainRAMSpace=yes', 'MaxRAMPercent=10')};"
          f" {RESTART_BOTH}; {write(CGROUP_CONF, 'ConstrainRAMSpace=yes')}",
          Culprit(words="not read"), (r"^job:slurm memory",), SIZE),
    slurm("a login to a job has less",
          f"{CONFINED}; echo PrologFlags=Contain >> {CONF}; {RESTART_BOTH}; {ADOPT}; {LOGINS};"
          f" {write('/etc/security/limits.d/95-vendor.conf', 'alice hard nofile 4096')}",
          Culprit("/etc/security/limits.d/95-vendor.conf", "alice hard nofile 4096"), AT_LOGIN),
    slurm("no login to a job is let in",
          f"{CONFINED}; echo PrologFlags=Alloc >> {CONF}; {RESTART_BOTH}; {ADOPT}; {LOGINS}",
          Culprit(CONF, "PrologFlags=Alloc"), AT_LOGIN),
    # As on a host for logins: no slurmd is found here, for it has another name.
    slurm("slurmd of another host",
          f"systemctl stop slurmd; cp $(command -v slurmd) {ELSEWHERE};"
          f" (ulimit -l 64; setsid {ELSEWHERE} > /dev/null 2>&1 < /dev/null &); sleep 4",
          Culprit(words="slurmd of node"), BOTH)._replace(
              person="pkill -x elsewhere; sleep 1; systemctl start slurmd; sleep 4"),
]  # fmt: skip
