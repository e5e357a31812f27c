# SPDX-License-Identifier: BSD-2-Clause
"""Every key that a policy may have, for whoever tells of all of them: readers load their own."""

from __future__ import annotations

from .containerd.policy import KEYS as CONTAINERD
from .core.keys import Key
from .core.waivers_policy import WAIVER
from .docker.policy import KEYS as DOCKER
from .kernel.policy import KEYS as KERNEL
from .podman.policy import KEYS as PODMAN
from .processes.policy import KEYS as PROCESSES
from .services.policy import KEYS as SERVICES
from .sessions.policy import KEYS as SESSIONS
from .shared_memory.policy import KEYS as SHARED_MEMORY
from .slurm.policy import JOBS
from .training.policy import TRAINING

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
