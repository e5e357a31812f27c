# SPDX-License-Identifier: GPL-3.0-or-later
"""Every fault, and the pairs that are made of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Sequence

from tests.places.containerd import faults as of_containerd
from tests.places.docker import faults as of_docker
from tests.places.docker import faults_rootless as of_rootless
from tests.places.kernel import faults as of_kernel
from tests.places.podman import faults as of_podman
from tests.places.podman import faults_quadlet as of_quadlet
from tests.places.services import faults as of_services
from tests.places.sessions import faults as of_limits_files
from tests.places.sessions import faults_connections as of_connections
from tests.places.sessions import faults_pam as of_pam
from tests.places.shared_memory import faults as of_shm
from tests.places.slurm import faults as of_slurm
from tests.places.systemd import faults as of_units

from . import of_leftovers, of_tools
from .fault import Fault, are_compatible

_ROOMS = (
    of_limits_files,
    of_pam,
    of_kernel,
    of_units,
    of_docker,
    of_leftovers,
    of_shm,
    of_services,
    of_slurm,
    of_podman,
    of_quadlet,
)
_LATER_ROOMS = (
    of_limits_files,
    of_pam,
    of_kernel,
    of_units,
    of_docker,
    of_leftovers,
    of_services,
    of_containerd,
    of_connections,
    of_tools,
    of_rootless,
)
_FIRST = [fault for room in _ROOMS for fault in room.FAULTS]
_LATER = [fault for room in _LATER_ROOMS for fault in room.MORE]
FAULTS: list[Fault] = [*_FIRST, *_LATER]
SEED = 20
PAIRS_OF_FIRST = 110
PAIRS = 130


def choose_pairs(count: int = PAIRS, seed: int = SEED) -> list[tuple[Fault, Fault]]:
    """Return pairs of faults that leave each other alone; every fault is in about as many.

    Faults of hosts with more packages, and those of connections, are made alone. The seed decides;
    the order within a pair is the order in which they are made. Pairs with a fault that was added
    later are drawn later, so that the others stay what they were.
    """
    first = draw_pairs(_FIRST, (), min(count, PAIRS_OF_FIRST), seed)
    later = {fault.name for fault in _LATER}
    return [*first, *draw_pairs(FAULTS, later, count - len(first), seed)]


def draw_pairs(
    faults: Sequence[Fault], some: Collection[str], count: int, seed: int
) -> list[tuple[Fault, Fault]]:
    """Draw pairs; of each, one is among *some* where any are given."""
    chance = random.Random(seed)
    faults = [fault for fault in faults if not (fault.extra or fault.through)]
    possible = [
        pair
        for pair in itertools.permutations(faults, 2)
        if are_compatible(*pair) and (not some or {fault.name for fault in pair} & set(some))
    ]
    chance.shuffle(possible)
    used = dict.fromkeys(faults_by_name(faults), 0)
    chosen: dict[frozenset[str], tuple[Fault, Fault]] = {}
    while possible and len(chosen) < count:
        one, other = min(possible, key=lambda pair: used[pair[0].name] + used[pair[1].name])
        key = frozenset((one.name, other.name))
        chosen[key] = (one, other)
        for name in key:
            used[name] += 1
        possible = [pair for pair in possible if {fault.name for fault in pair} != key]
    return list(chosen.values())


def faults_by_name(faults: Sequence[Fault]) -> dict[str, Fault]:
    """Return the faults by their names, each of which is there once."""
    named = {fault.name: fault for fault in faults}
    assert len(named) == len(faults), "two faults have one name"
    return named
