# SPDX-License-Identifier: BSD-2-Clause
"""Every code of a cause, with what it means and the place that it is about."""

from __future__ import annotations

from .policy.connection_causes import CODES as CONNECTION
from .policy.container_process import CODES as IN_CONTAINER
from .policy.containerd_causes import CODES as CONTAINERD
from .policy.docker_causes import CODES as DOCKER
from .policy.docker_compose import CODES as DOCKER_COMPOSE
from .policy.docker_obstacles import CODES as DOCKER_OBSTACLES
from .policy.docker_rootless import CODES as DOCKER_ROOTLESS
from .policy.docker_running import CODES as DOCKER_RUNNING
from .policy.kernel_causes import CODES as KERNEL
from .policy.logind_causes import CODES as LOGIND
from .policy.old_session_causes import CODES as OLD_SESSION
from .policy.pam_reach import CODES as PAM_REACH
from .policy.podman_causes import CODES as PODMAN
from .policy.podman_running import CODES as PODMAN_RUNNING
from .policy.process_causes import CODES as PROCESS
from .policy.quadlet import CODES as QUADLET
from .policy.session_causes import CODES as SESSION
from .policy.shell_causes import CODES as SHELL
from .policy.shm_causes import CODES as SHM
from .policy.slurm_adoption import CODES as SLURM_ADOPTION
from .policy.slurm_causes import CODES as SLURM
from .policy.slurm_confine_causes import CODES as SLURM_CONFINE
from .policy.tasks_causes import CODES as TASKS
from .policy.training_causes import CODES as TRAINING
from .policy.unit_causes import CODES as UNIT
from .policy.unit_nr_open import CODES as UNIT_NR_OPEN
from .policy.workspace_causes import CODES as WORKSPACE

_RUN = "a training run"
_SESSION, _PROCESS, _SERVICE = "session:USER@SERVICE", "process:PID", "service:UNIT"
_DOCKER, _PODMAN = "container:docker/NAME", "container:podman/NAME"

CODES: dict[str, tuple[str, str]] = {
    code: (place, text)
    for place, codes in (
        (_SESSION, SESSION),
        (_SESSION, PAM_REACH),
        (_SESSION, SHELL),
        ("connection", CONNECTION),
        ("kernel", KERNEL),
        ("path:/dev/shm", SHM),
        (_SERVICE, UNIT),
        (_SERVICE, UNIT_NR_OPEN),
        (_SERVICE, PROCESS),
        (_SERVICE, TASKS),
        ("logind", LOGIND),
        (_PROCESS, OLD_SESSION),
        (_PROCESS, IN_CONTAINER),
        ("new-container:docker", DOCKER),
        ("new-container:docker", DOCKER_OBSTACLES),
        ("new-container:docker/USER", DOCKER_ROOTLESS),
        (_DOCKER, DOCKER_RUNNING),
        (_DOCKER, DOCKER_COMPOSE),
        ("new-container:podman", PODMAN),
        (_PODMAN, PODMAN_RUNNING),
        (_PODMAN, QUADLET),
        ("new-container:containerd", CONTAINERD),
        ("job:slurm", SLURM),
        ("job:slurm", SLURM_CONFINE),
        ("job:slurm@ssh", SLURM_ADOPTION),
        (_RUN, TRAINING),
        (_RUN, WORKSPACE),
    )
    for code, text in codes.items()
}
"""By each code its place, as ``explain`` takes it where it does, and what it means."""


def describe_code(code: str) -> list[str]:
    """Return what a code means, and how to look further.

    :raises ValueError: If there is none of that name, with those of a name near it.
    """
    if code not in CODES:
        raise ValueError(f"{code!r} is no code of a cause; {_name_near(code)}")
    from .explain import ACCEPTED

    place, text = CODES[code]
    lines = [f"{code}: {text}", f"in {place}"]
    if place in ACCEPTED.split(", "):
        lines.append(f"who has a say there: mlhost-limits explain {place} ITEM")
    return lines


def _name_near(code: str) -> str:
    from difflib import get_close_matches  # Slow to load, and of a slip alone.

    near = [one for one in CODES if code in one][:3] or get_close_matches(code, CODES)
    return f"near it are {', '.join(near)}" if near else "a check names them with --json"
