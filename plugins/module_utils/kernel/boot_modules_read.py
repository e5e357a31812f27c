# SPDX-License-Identifier: BSD-2-Clause
"""Read which modules a boot loads before the files of sysctl.d are read, and what stops some."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.values import Declaration, NamedTuple
from ..host.files import read_folder
from .boot_folders_read import list_folders
from .boot_loader import find_loader_stops
from .boot_modules import find_hidden, find_loads, find_stops, pick_strongest
from .boot_units_read import find_mask

_LOADER = "systemd-modules-load.service"


class Modules(NamedTuple):
    """The modules that are loaded early, and of others what keeps them from it."""

    loaded: frozenset[str]
    stops: Mapping[str, Declaration]


def read_modules(root: str, loader: Mapping[str, str]) -> Modules:
    """Return what files of modules-load.d(5) have loaded, and what keeps modules from it.

    :param loader: The boot loader's files.
    """
    layers = [read_folder(one, root) for one in list_folders("modules-load.d", root)]
    loads = find_loads(pick_strongest(layers))
    rules = pick_strongest([read_folder(one, root) for one in list_folders("modprobe.d", root)])
    words = find_loader_stops(loader)
    mask = find_mask(_LOADER, root) or words.pop("", None)
    stops = {**find_hidden(layers), **find_stops(rules), **words}
    hidden = {name: at for name, at in stops.items() if name not in loads or at.line}
    if mask:
        hidden.update(dict.fromkeys(loads, mask))
    return Modules(loads - hidden.keys(), hidden)
