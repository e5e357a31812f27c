# SPDX-License-Identifier: BSD-2-Clause
"""Every key that a policy may have, for whoever tells of all of them: readers load their own."""

from __future__ import annotations

from .containerd_policy import KEYS as CONTAINERD
from .docker_policy import KEYS as DOCKER
from .kernel_policy import KEYS as KERNEL
from .keys import Key
from .podman_policy import KEYS as PODMAN
from .processes_policy import KEYS as PROCESSES
from .services_policy import KEYS as SERVICES
from .sessions_policy import KEYS as SESSIONS
from .shm_policy import KEYS as SHARED_MEMORY
from .slurm_policy import JOBS
from .training_policy import TRAINING
from .waivers_policy import WAIVER

ENGINES = {
    "docker": Key("mapping", "Docker", below=DOCKER),
    "podman": Key("mapping", "Podman", below=PODMAN),
    "containerd": Key("mapping", "containerd, and Kubernetes above it", below=CONTAINERD),
}
SECTIONS = {
    "sessions": Key("list", "PAM logins", below=SESSIONS),
    "kernel": Key("by name", "sysctls by their names", below=KERNEL),
    "services": Key("mapping", "systemd's services and user managers", below=SERVICES),
    "containers": Key("mapping", "what containers get from their engines", below=ENGINES),
    "processes": Key("list", "running processes; only checked", below=PROCESSES),
    "shared_memory": Key("mapping", "the host's /dev/shm", below=SHARED_MEMORY),
    "jobs": Key("mapping", "batch jobs", below=JOBS),
    "training": Key("mapping", "the numbers of one training run; only checked", below=TRAINING),
    "waivers": Key("list", "what may fall short, and until when", below=WAIVER),
}
