# SPDX-License-Identifier: GPL-3.0-or-later
"""Every attack there is."""

from __future__ import annotations

from . import of_daemons, of_folders, of_links, of_logs, of_processes, of_remedies, of_shells
from .attack import Attack
from .needed import NEEDED

_ALL = (
    *of_shells.ATTACKS,
    *of_daemons.ATTACKS,
    *of_remedies.ATTACKS,
    *of_processes.ATTACKS,
    *of_folders.ATTACKS,
    *of_links.ATTACKS,
    *of_logs.ATTACKS,
)
ATTACKS: tuple[Attack, ...] = tuple(one._replace(guard=NEEDED.get(one.name, "")) for one in _ALL)
