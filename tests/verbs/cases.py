# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of the made-up host, section by section, and what runs on it meanwhile."""

from __future__ import annotations

from typing import Any, NamedTuple

from .inside import Daemon, Setting

SSHD = Daemon("sshd", 30, "/system.slice/ssh.service")
CRON = Daemon("cron", 31, "/system.slice/cron.service")
LOGIND = Daemon("systemd-logind", 39, "/system.slice/systemd-logind.service")
MANAGER = Daemon(
    *("systemd", 50, "/user.slice/user-1000.slice/user@1000.service/init.scope"), uid=1000
)
LOGINS = Setting((SSHD, CRON))

_ID = "ab12" * 16
_OTHER = "cd34" * 16


def _of_jobs(old: bool) -> Daemon:
    """Return the service of the site's own, which has less than its policy asks for."""
    limits = {"memlock": (65536, 65536), "nofile": (2048, 2048)} if old else {}
    return Daemon("jobs", 40, "/system.slice/jobs.service", limits=limits, old=old)


def _of_docker(old: bool) -> tuple[Daemon, ...]:
    """Return dockerd with its containerd, and a container of somebody's."""
    unit, container = "/system.slice/docker.service", f"/system.slice/docker-{_ID}.scope"
    containerd = Daemon(
        *("containerd", 41, "/system.slice/containerd.service", ("/usr/sbin/containerd",)),
        old=old,
        socket="/run/containerd/containerd.sock",
    )
    dockerd = Daemon(
        "dockerd", 42, unit, ("/usr/sbin/dockerd",), old=old, socket="/run/docker.sock"
    )
    few = {"nofile": (512, 512)}
    return containerd, dockerd, Daemon("trainer", 43, container, limits=few, old=True)


def _of_podman(old: bool) -> tuple[Daemon, ...]:
    words = ("/usr/bin/conmon", "-c", _ID, "-n", "lab", "-b", "/run/none")
    scope = f"/machine.slice/libpod-{_ID}.scope"
    return (
        Daemon("conmon", 44, f"/machine.slice/libpod-conmon-{_ID}.scope", words, old=old),
        Daemon("notebook", 45, scope, limits={"nofile": (600, 600)}, old=True, parent=44),
    )


def _of_containerd(old: bool) -> tuple[Daemon, ...]:
    words = ("/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", _OTHER)
    pod = "/kubepods.slice/kubepods-pod12345678_1234_1234_1234_123456789012.slice"
    containerd = Daemon(
        *("containerd", 41, "/system.slice/containerd.service", ("/usr/sbin/containerd",)),
        limits={"nofile": (700, 800)} if old else {},
        old=old,
        socket="/run/containerd/containerd.sock",
    )
    shim = Daemon("containerd-shim", 46, "/system.slice/containerd.service", words, old=old)
    inside = f"{pod}/cri-containerd-{_OTHER}.scope"
    few = {"nofile": (600, 600)}
    return containerd, shim, Daemon("pause", 47, inside, limits=few, old=True, parent=46)


def _of_crio(old: bool) -> tuple[Daemon, ...]:
    words = ("/usr/bin/conmon", "-c", _OTHER, "-b", "/run/pods/it", "--exit-dir", "/run/crio/exits")
    pod = "/kubepods.slice/kubepods-pod12345678_1234_1234_1234_123456789012.slice"
    unit = "/system.slice/crio.service"
    crio = Daemon("crio", 51, unit, ("/usr/sbin/crio",), old=old, socket="/run/crio/crio.sock")
    conmon = Daemon("conmon", 52, f"{pod}/crio-conmon-{_OTHER}.scope", words, old=old)
    few = {"nofile": (600, 600)}
    return (
        crio,
        conmon,
        Daemon(*("pause", 53, f"{pod}/crio-{_OTHER}.scope"), limits=few, old=True, parent=52),
    )


def _of_slurm(old: bool) -> tuple[Daemon, ...]:
    words = ("slurmstepd: [17.batch]", "600")
    few = {"nofile": (600, 700)} if old else {}
    return (
        Daemon("slurmd", 48, "/system.slice/slurmd.service", ("slurmd", "-D"), few, old=old),
        Daemon("slurmstepd", 49, "/system.slice/slurmstepd.scope", words, few, old=True),
    )


class Case(NamedTuple):
    """One section of a policy on the host.

    ``given`` is what else the module is given, ``runs`` what runs: before, and after a restart.
    ``places`` are the places and items that ``explain`` is asked for.
    """

    policy: dict[str, Any]
    before: Setting = Setting()
    after: Setting = Setting()
    given: dict[str, Any] = {}
    places: tuple[tuple[str, str], ...] = ()


SLURM_TOOLS = ("scontrol", "sinfo", "srun", "scancel")
_NOFILE = {"nofile": {"soft": 900, "hard": 1000}}

CASES = {
    "kernel": Case(
        {"kernel": {"vm.max_map_count": 262144, "fs.nr_open": 2097152, "fs.file-max": 1000}},
        places=(("kernel", "vm.max_map_count"), ("kernel", "fs.nr_open"), ("kernel", "no.such")),
    ),
    "sessions": Case(
        {"sessions": [{"users": ["*", "root"], "limits": {**_NOFILE, "memlock": "8MiB"}}]},
        LOGINS,
        LOGINS,
        {"override": True},
        places=(
            *(("session:alice@sshd", "nofile"), ("session:root@cron", "memlock")),
            *(("session:alice@login", "nofile"), ("session:nobody@su", "nofile")),
        ),
    ),
    "services": Case(
        {
            "services": {
                "default": {"nofile": {"soft": 1024, "hard": 4000}, "tasks": 200},
                "user_default": {"nofile": 900},
                "units": {
                    "jobs.service": {"nofile": 3000, "memlock": "1MiB", "tasks": 500},
                    "absent.service": {"nofile": 3000},
                },
                "logind": {"remove_ipc": False},
            }
        },
        Setting((SSHD, _of_jobs(old=True), LOGIND, MANAGER)),
        Setting((SSHD, _of_jobs(old=False), LOGIND, MANAGER)),
        {"services_restart": ["jobs.service"]},
        (
            *(("service:jobs.service", "nofile"), ("service:jobs.service", "tasks")),
            *(("new-service:system", "nofile"), ("process:40", "memlock")),
            *(("service:absent.service", "nofile"), ("new-service:alice", "nofile")),
        ),
    ),
    "shared_memory": Case(
        {"shared_memory": {"size": "10GiB"}},
        after=Setting(shm="10g"),
        places=(("path:/dev/shm", "size"), ("path:/tmp", "size")),
    ),
    "docker": Case(
        {"containers": {"docker": {"limits": {"nofile": 900}, "shm_size": "1GiB"}}},
        Setting(_of_docker(old=True), ("dockerd",)),
        Setting(_of_docker(old=False), ("dockerd",)),
        {"docker_restart": True},
        (("new-container:docker", "nofile"), ("new-container:docker", "shm_size")),
    ),
    "podman": Case(
        {"containers": {"podman": {"limits": {"nofile": 900}, "shm_size": "64MiB"}}},
        Setting(_of_podman(old=True), ("podman",)),
        Setting(_of_podman(old=False), ("podman",)),
        {"override": True},
        (
            *(("new-container:podman", "nofile"), ("new-container:podman", "shm_size")),
            *(("container:podman/lab", "nofile"), ("container:podman/lab", "shm_size")),
        ),
    ),
    "containerd": Case(
        {"containers": {"containerd": {"limits": {"nofile": 900}}}},
        Setting(_of_containerd(old=True), ("ctr",)),
        Setting(_of_containerd(old=False), ("ctr",)),
        {"containerd_restart": True},
        (("new-container:containerd", "nofile"), ("new-container:containerd", "memlock")),
    ),
    "crio": Case(
        {"containers": {"crio": {"limits": {"nofile": 900}, "tasks": 4000}}},
        Setting(_of_crio(old=True)),
        Setting(_of_crio(old=False)),
        {"crio_restart": True},
        (
            *(("new-container:crio", "nofile"), ("new-container:crio", "tasks")),
            *(("new-container:crio", "memlock"), ("new-container:crio", "shm_size")),
        ),
    ),
    "slurm": Case(
        {"jobs": {"slurm": {"limits": {"nofile": 2000}, "memory": "64MiB", "cpus": 1}}},
        Setting((SSHD, *_of_slurm(old=True)), SLURM_TOOLS),
        Setting((SSHD, *_of_slurm(old=False)), SLURM_TOOLS),
        {"slurm_restart": True, "slurm_conf": True},
        (("job:slurm", "nofile"), ("job:slurm/batch", "nofile"), ("job:slurm@ssh", "nofile")),
    ),
}


def _join(policies: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one policy of all sections."""
    whole: dict[str, Any] = {}
    for policy in policies:
        for key, value in policy.items():
            whole[key] = {**whole.get(key, {}), **value} if isinstance(value, dict) else value
    return whole


WHOLE = _join([case.policy for case in CASES.values()])
"""All sections at once."""
