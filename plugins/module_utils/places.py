# SPDX-License-Identifier: BSD-2-Clause
"""Every place, in the order of writing: fs.nr_open must be up before a nofile may use it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .containerd.place import Containerd
from .core.values import Rlimit
from .crio.place import Crio
from .docker.place import Docker
from .host.look import Look, Process
from .host.place import Place
from .kernel.place import Kernel
from .podman.place import Podman
from .processes.place import Processes
from .services.place import Services
from .sessions.place import Sessions
from .shared_memory.place import SharedMemory
from .slurm.place import Slurm, Steps
from .training.place import Training

PLACES: tuple[Place[Any], ...] = (
    Kernel(),
    Sessions(),
    Services(),
    Containerd(),
    Docker(),
    Podman(),
    Crio(),
    Slurm(),
    Steps(),
    SharedMemory(),
    Processes(),
    Training(),
)
SECTIONS = tuple(place.name for place in PLACES)
PROVISIONED = tuple(place.name for place in PLACES if place.is_provisioned)
EXPLAINED = tuple(name for place in PLACES for name in place.names)


def look_at_host(
    processes: Iterable[Process] | None = None,
    limits_by_pid: Mapping[int, Mapping[str, Rlimit]] | None = None,
) -> Look:
    """Return a new look at this host, which knows what each place's files state.

    :param processes: With ``limits_by_pid``, what was read of them already.
    """
    return Look(_list_promises, processes, limits_by_pid)


def _list_promises(look: Look) -> Iterator[tuple[int, str]]:
    for place in PLACES:
        yield from place.promise(look)
