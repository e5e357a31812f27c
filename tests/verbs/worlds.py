# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on which something is amiss, and what is asked of each; one record holds all answers."""

from __future__ import annotations

import resource
from typing import Any, NamedTuple

from . import inside, library
from .cases import CASES, LOGINS, SLURM_TOOLS, SSHD
from .inside import Daemon, Setting


class World(NamedTuple):
    """One host, and what is asked of it: a check, chains of places, and perhaps provisioning."""

    policy: dict[str, Any]
    setting: Setting = Setting()
    files: dict[str, str] = {}
    places: tuple[tuple[str, str], ...] = ()
    given: dict[str, Any] = {}
    own: str = ""
    """What the process that looks is called; its soft nofile is 500 then."""
    options: dict[str, Any] | None = None
    """What provisioning is given besides the policy, if it is asked for in the end."""

    def ask(self) -> dict[str, Any]:
        """Return what is told. Runs on the host."""
        if self.own:
            inside.name_process(self.own)
            resource.setrlimit(resource.RLIMIT_NOFILE, (500, 4096))
        told = {"check": library.check(policy=self.policy, **self.given)}
        chains = {f"{place} {item}": library.explain(place, item) for place, item in self.places}
        told["explain"] = chains
        if self.options is not None:
            told["provision"] = library.provision(policy=self.policy, **self.options)
        return told


_HERE = "/run/stand-ins"
_SLURM, _PODMAN = CASES["slurm"], CASES["podman"]
_DOCKER, _CONTAINERD = CASES["docker"], CASES["containerd"]
_SERVICES = CASES["services"]


def _of_slurm(**stated: Any) -> dict[str, Any]:
    return {"jobs": {"slurm": {"limits": {"nofile": 2000}, **stated}}}


_OF_ALICE = Daemon(
    "python",
    60,
    "/user.slice/user-1000.slice/session-2.scope",
    limits={"nofile": (700, 700)},
    uid=1000,
)
_MANY = tuple(_OF_ALICE._replace(pid=60 + number) for number in range(24))
_IN_DOCKER = _OF_ALICE._replace(
    pid=90, uid=0, cgroup=f"/system.slice/docker-{'ab12' * 16}.scope", name="trainer"
)
_IN_JOBS = Daemon(
    "worker",
    61,
    "/system.slice/jobs.service",
    limits={"nofile": (300, 300), "memlock": (4096, 4096)},
    uid=1000,
)

WORLDS = {
    "slurm gives less than asked": World(
        _of_slurm(propagate=[], partitions=["batch", "gone"], memory="1GiB", cpus=99),
        _SLURM.before,
        {
            f"{_HERE}/slurm-config": "PropagateResourceLimits = ALL\nVSizeFactor = 0\n",
            f"{_HERE}/job-nofile": "600",
        },
        _SLURM.places,
    ),
    "slurm drained the node": World(
        _of_slurm(memory="1GiB"), _SLURM.before, {f"{_HERE}/partitions": "batch*|drained|bad disk"}
    ),
    "nobody may ask slurm": World(
        _of_slurm(memory="1GiB"), _SLURM.before, given={"canary": "never"}
    ),
    "slurm has no tools": World(_of_slurm(), Setting((SSHD, *_SLURM.before.daemons[1:]))),
    "slurm's user has no shell": World(_of_slurm(), _SLURM.before, given={"users": ["nobody"]}),
    "slurm.conf is served": World(
        _of_slurm(),
        Setting((SSHD,), SLURM_TOOLS),
        {"/etc/default/slurmd": "SLURMD_OPTIONS=--conf-server node1\n"},
        _SLURM.places,
    ),
    "logins are adopted into jobs": World(
        _of_slurm(),
        _SLURM.after,
        {
            "/etc/pam.d/sshd": "account required pam_unix.so\n"
            "-account sufficient pam_slurm_adopt.so\nsession required pam_limits.so\n"
        },
        (("job:slurm@ssh", "nofile"),),
    ),
    "slurm asks PAM": World(
        _of_slurm(),
        _SLURM.before,
        {
            "/etc/slurm/slurm.conf": "ClusterName=c\nUsePAM=1\nPropagateResourceLimits=NOFILE\n",
            "/etc/pam.d/slurm": "session required pam_limits.so\n",
        },
        _SLURM.places,
    ),
    "podman starts nothing": World(
        _PODMAN.policy,
        _PODMAN.before,
        {f"{_HERE}/podman-refuses": "nofile"},
        _PODMAN.places,
    ),
    "podman's files are broken": World(
        _PODMAN.policy,
        _PODMAN.before,
        {"/etc/containers/containers.conf": "[containers\n"},
        _PODMAN.places,
    ),
    "podman of a user": World(
        {"containers": {"podman": {"limits": {"nofile": 900}, "users": ["alice", "who"]}}},
        Setting((*LOGINS.daemons, *_PODMAN.before.daemons), ("podman",)),
        places=(("new-container:podman/alice", "nofile"), ("container:podman/none", "nofile")),
    ),
    "podman is not installed": World(_PODMAN.policy, places=_PODMAN.places),
    "nobody may ask podman": World(_PODMAN.policy, _PODMAN.before, given={"canary": "never"}),
    "containerd starts nothing": World(
        _CONTAINERD.policy,
        _CONTAINERD.before,
        {f"{_HERE}/ctr-refuses": "ctr: permission denied\n"},
        _CONTAINERD.places,
    ),
    "containerd has a base specification": World(
        _CONTAINERD.policy,
        _CONTAINERD.before,
        {
            "/etc/containerd/config.toml": 'version = 2\n[plugins."io.containerd.grpc.v1.cri"'
            '.containerd.runtimes.runc]\n  base_runtime_spec = "/etc/containerd/base.json"\n',
            "/etc/containerd/base.json": '{"process": {"rlimits": [{"type": "RLIMIT_NOFILE",'
            ' "soft": 256, "hard": 512}]}}',
        },
        _CONTAINERD.places,
    ),
    "containerd's base specification is gone": World(
        _CONTAINERD.policy,
        _CONTAINERD.before,
        {
            "/etc/containerd/config.toml": 'version = 2\n[plugins."io.containerd.grpc.v1.cri"'
            '.containerd.runtimes.runc]\n  base_runtime_spec = "/etc/containerd/base.json"\n'
        },
        _CONTAINERD.places,
    ),
    "containerd does not run": World(_CONTAINERD.policy, places=_CONTAINERD.places),
    "nobody may ask containerd": World(
        _CONTAINERD.policy, _CONTAINERD.before, given={"canary": "never"}
    ),
    "docker starts nothing": World(
        _DOCKER.policy,
        _DOCKER.before,
        {f"{_HERE}/docker-refuses": ""},
        (*_DOCKER.places, ("container:docker/lab", "nofile"), ("container:docker/x", "nofile")),
    ),
    "docker does not run": World(
        _DOCKER.policy, Setting(programs=("dockerd",)), places=_DOCKER.places
    ),
    "docker cannot start": World(
        _DOCKER.policy,
        Setting(programs=("dockerd",)),
        {"/etc/docker/daemon.json": '{"default-ulimits": 7}'},
    ),
    "docker's file is broken": World(
        _DOCKER.policy,
        _DOCKER.before,
        {"/etc/docker/daemon.json": '{"default-ulimits": {"nofile": '},
        (*_DOCKER.places, ("container:docker/lab", "shm_size")),
    ),
    "nobody may ask docker": World(
        {"containers": {"docker": {"limits": {"nofile": 900}}}},
        _DOCKER.before,
        given={"canary": "never"},
        places=(("container:docker/lab", "nofile"),),
    ),
    "users' processes have less": World(
        {
            "processes": [
                {"user": "alice", "limits": {"nofile": 900}},
                {"name": "trainer", "limits": {"nofile": 900}},
            ]
        },
        Setting((*_MANY, _IN_DOCKER)),
        places=(("process:60", "nofile"), ("process:90", "nofile")),
    ),
    "a process of a user is in a service": World(
        _SERVICES.policy, Setting((*_SERVICES.before.daemons, _IN_JOBS))
    ),
    "services of all kinds": World(
        {
            "services": {
                "units": {
                    "system.slice": {"tasks": 5000},
                    "none.slice": {"tasks": 5000},
                    "job@.service": {"nofile": 3000},
                    "masked.service": {"nofile": 3000, "tasks": 10},
                    "ssh.service": {"nofile": 1000, "tasks": 10},
                }
            }
        },
        LOGINS,
        {
            "/etc/systemd/system/masked.service": "",
            "/etc/systemd/system/job@.service": "[Service]\n",
        },
        (
            *(("service:masked.service", "tasks"), ("new-service:system", "tasks")),
            *(("new-service:who", "nofile"), ("new-service:system", "cores")),
        ),
    ),
    "nobody may start a service": World(
        _SERVICES.policy, _SERVICES.before, given={"canary": "never", "probe": "predict"}
    ),
    "no systemd runs": World(
        _SERVICES.policy, _SERVICES.before._replace(booted=False), places=_SERVICES.places
    ),
    "a shell lowers what PAM gives": World(
        CASES["sessions"].policy,
        LOGINS,
        {"/home/alice/.profile": "ulimit -n 300\n", "/etc/profile": "ulimit -S -n 600\n"},
        (("session:alice@sshd", "nofile"), ("session:alice@none", "nofile")),
    ),
    "sessions are foretold": World(
        CASES["sessions"].policy, LOGINS, given={"probe": "predict", "users": ["alice", "who"]}
    ),
    "PAM reads no limits": World(
        CASES["sessions"].policy,
        LOGINS,
        {"/etc/pam.d/sshd": "account required pam_unix.so\nsession required pam_unix.so\n"},
        (("session:alice@sshd", "nofile"),),
    ),
    "sshd does without PAM": World(
        CASES["sessions"].policy,
        LOGINS,
        {"/etc/ssh/sshd_config": "UsePAM no\n"},
        (("session:alice@sshd", "nofile"),),
    ),
    "the connection has less": World(
        {"sessions": [{"users": ["root"], "limits": {"nofile": {"soft": 900}}}]}, LOGINS, own="sshd"
    ),
    "a waiver holds and one is idle": World(
        {
            **CASES["kernel"].policy,
            "waivers": [
                {"what": "fs.nr_open", "why": "later", "until": "2999-12-31"},
                {"what": "net.*", "why": "never", "until": "2999-12-31"},
            ],
        }
    ),
    "a policy asks for nothing here": World(
        CASES["kernel"].policy, given={"sections": ["sessions"]}
    ),
}
