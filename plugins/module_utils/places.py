# SPDX-License-Identifier: BSD-2-Clause
"""Every place, in the order of writing: fs.nr_open must be up before a nofile may use it."""

from __future__ import annotations

from .containerd_place import Containerd
from .docker_place import Docker
from .kernel_place import Kernel
from .podman_place import Podman
from .processes_place import Processes
from .services_place import Services
from .sessions_place import Sessions
from .shm_place import SharedMemory
from .slurm_place import Slurm, Steps
from .training_place import Training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .place import Place

PLACES: tuple[Place[Any], ...] = (
    Kernel(),
    Sessions(),
    Services(),
    Containerd(),
    Docker(),
    Podman(),
    Slurm(),
    Steps(),
    SharedMemory(),
    Processes(),
    Training(),
)
SECTIONS = tuple(place.name for place in PLACES)
PROVISIONED = tuple(place.name for place in PLACES if place.is_provisioned)
EXPLAINED = tuple(name for place in PLACES for name in place.names)
