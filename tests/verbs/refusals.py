# SPDX-License-Identifier: GPL-3.0-or-later
"""What provisioning refuses, and runs that fail half way: each leaves every file as it was."""

from __future__ import annotations

from typing import Any, NamedTuple

from .cases import CASES, LOGINS
from .inside import Setting


class Refusal(NamedTuple):
    """A run that must fail, on a host that must stay as it is."""

    policy: dict[str, Any]
    setting: Setting = Setting()
    given: dict[str, Any] = {}
    files: dict[str, str] = {}


def _sessions(**limits: Any) -> dict[str, Any]:
    return {"sessions": [{"users": ["*", "root"], "limits": limits}]}


_HERE = "/run/stand-ins"
_DOCKER, _SERVICES, _SLURM = CASES["docker"], CASES["services"], CASES["slurm"]
_PODMAN, _CONTAINERD, _SHM = CASES["podman"], CASES["containerd"], CASES["shared_memory"]
_USERS = {"containers": {"podman": {"limits": {"nofile": 2000}, "users": ["alice"]}}}

REFUSALS = {
    "nofile above what the kernel allows": Refusal(_sessions(nofile=2097152), LOGINS),
    "nobody could log in": Refusal(_sessions(nofile=900, maxlogins=0), LOGINS),
    "a limits file with half a block": Refusal(
        _sessions(nofile=900),
        LOGINS,
        {"override": True, "sessions_file": "/etc/security/limits.conf"},
        {"/etc/security/limits.conf": "# BEGIN mlhost.limits\n* soft nofile 1\n"},
    ),
    "a sysctl that this kernel has not": Refusal({"kernel": {"no.such.key": 1}}),
    "a policy that is none": Refusal({"kernel": {"vm.max_map_count": "many"}}),
    "daemon.json is broken": Refusal(
        _DOCKER.policy, _DOCKER.before, _DOCKER.given, {"/etc/docker/daemon.json": '{"a": '}
    ),
    "dockerd takes it not": Refusal(
        _DOCKER.policy,
        _DOCKER.before,
        _DOCKER.given,
        {f"{_HERE}/dockerd-refuses": "the following directives are specified both"},
    ),
    "docker does not come back": Refusal(
        _DOCKER.policy,
        _DOCKER.before,
        _DOCKER.given,
        {f"{_HERE}/refused": "restart docker.service\n"},
    ),
    "docker has no unit to restart": Refusal(
        _DOCKER.policy,
        _DOCKER.before,
        _DOCKER.given,
        {"/etc/systemd/system/docker.service": ""},
    ),
    "a flag states what daemon.json would": Refusal(
        _DOCKER.policy,
        _DOCKER.before,
        _DOCKER.given,
        {
            "/etc/systemd/system/docker.service": "[Service]\n"
            "ExecStart=/usr/bin/dockerd --default-ulimit nofile=100:100\n"
        },
    ),
    "podman starts nothing with it": Refusal(
        _PODMAN.policy,
        _PODMAN.before,
        _PODMAN.given,
        {f"{_HERE}/podman-refuses": "nofile=900"},
    ),
    "a user's containers would be lost": Refusal(
        _USERS, Setting(LOGINS.daemons, ("podman",)), {"override": True}
    ),
    "podman's files are broken": Refusal(
        _PODMAN.policy,
        _PODMAN.before,
        _PODMAN.given,
        {"/etc/containers/containers.conf": "[containers\n"},
    ),
    "containerd does not come back": Refusal(
        _CONTAINERD.policy,
        _CONTAINERD.before,
        _CONTAINERD.given,
        {f"{_HERE}/refused": "restart containerd.service\n"},
    ),
    "systemd does not read its files": Refusal(
        _SERVICES.policy,
        _SERVICES.before,
        _SERVICES.given,
        {f"{_HERE}/refused": "daemon-reload\n"},
    ),
    "a service does not come back": Refusal(
        _SERVICES.policy,
        _SERVICES.before,
        _SERVICES.given,
        {f"{_HERE}/refused": "restart jobs.service\n"},
    ),
    "a service that must not be restarted": Refusal(
        _SERVICES.policy, _SERVICES.before, {"services_restart": ["dbus.service"]}
    ),
    "slurm takes it not": Refusal(
        {"jobs": {"slurm": {"limits": {"nofile": 2000}, "propagate": []}}},
        _SLURM.before,
        _SLURM.given,
        {f"{_HERE}/slurm-refuses": "PropagateResourceLimits"},
    ),
    "slurm's controller is silent": Refusal(
        {"jobs": {"slurm": {"limits": {"nofile": 2000}, "propagate": []}}},
        _SLURM.before,
        _SLURM.given,
        {f"{_HERE}/reconfigure-fails": ""},
    ),
    "slurmd does not come back": Refusal(
        _SLURM.policy,
        _SLURM.before,
        _SLURM.given,
        {f"{_HERE}/refused": "restart slurmd.service\n"},
    ),
    "fstab has half a block": Refusal(
        _SHM.policy, files={"/etc/fstab": "# BEGIN mlhost.limits\ntmpfs /dev/shm tmpfs rw 0 0\n"}
    ),
}
