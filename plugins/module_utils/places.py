# SPDX-License-Identifier: BSD-2-Clause
"""Every place, in the order of writing: fs.nr_open must be up before a nofile may use it."""

from __future__ import annotations

from .containerd.place import Containerd
from .docker.place import Docker
from .kernel.place import Kernel
from .podman.place import Podman
from .processes.place import Processes
from .services.place import Services
from .sessions.place import Sessions
from .shared_memory.place import SharedMemory
from .slurm.place import Slurm, Steps
from .training.place import Training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .core.place import Place

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
