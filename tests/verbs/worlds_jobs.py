# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of a cluster on which no job runs as it shall, and what each link of the chain tells."""

from __future__ import annotations

from .cases import CASES, SLURM_TOOLS, SSHD
from .inside import Daemon, Setting
from .worlds import World

_HERE = "/run/stand-ins"
_CONF = "/etc/slurm/slurm.conf"
_BASE = "ClusterName=c\nSlurmctldHost=node1\nNodeName=node1 CPUs=2\n"
_ADOPTS = {
    "/etc/pam.d/sshd": "account required pam_unix.so\n"
    "-account sufficient pam_slurm_adopt.so\nsession required pam_limits.so\n"
}
_NO_SESSION = "account required pam_deny.so\nsession required pam_limits.so\n"
_SLURM = CASES["slurm"].before
_BY_HAND = Daemon("slurmd", 48, "/user.slice/user-0.slice/session-3.scope", ("slurmd",))


def _ask(files: dict[str, str], setting: Setting = _SLURM) -> World:
    policy = {"jobs": {"slurm": {"limits": {"nofile": 2000}}}}
    places = ("job:slurm", "job:slurm@ssh")
    return World(policy, setting, files, tuple((place, "nofile") for place in places))


WORLDS_OF_JOBS = {
    "slurmd was started by hand": _ask({}, Setting((SSHD, _BY_HAND), SLURM_TOOLS)),
    "slurmd runs on other hosts": _ask({}, Setting((SSHD,), SLURM_TOOLS)),
    "slurmd reads a file that is gone": _ask(
        {}, Setting((SSHD, _BY_HAND._replace(words=("slurmd", "-f", "/etc/gone"))), SLURM_TOOLS)
    ),
    "slurm runs a prolog and confines jobs": _ask(
        {
            _CONF: f"{_BASE}TaskProlog=/etc/slurm/prolog\nJobContainerType=job_container/tmpfs\n",
            "/etc/slurm/prolog": "#!/bin/sh\nulimit -c 0\nulimit -n 300\n",
            "/etc/slurm/cgroup.conf": "ConstrainRAMSpace=yes\nConstrainCores=no\n",
        }
    ),
    "nobody may log in to submit a job": _ask(
        {f"/etc/pam.d/{name}": _NO_SESSION for name in ("sshd", "login", "su")}
    ),
    "slurm refuses jobs": _ask(
        {f"{_HERE}/srun-refuses": "Unable to allocate resources: Invalid account", **_ADOPTS}
    ),
    "slurm has taken the node away": _ask(
        {f"{_HERE}/partitions": "batch*|drained|bad disk", **_ADOPTS}
    ),
}
