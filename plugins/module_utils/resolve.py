# SPDX-License-Identifier: BSD-2-Clause
"""Say what the files of a host, or of a tree that will be one, will give: no process is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .core.resolved import Query
from .host.image import Tree
from .places import PLACES
from .systemd.limits import MANAGER

_TYPES = ("conf", "mount", "scope", "service", "slice", "socket", "swap", "target", "timer")


def resolve_tree(
    root: str, user: str | None, service: str | None, unit: str = MANAGER
) -> Iterator[dict[str, object]]:
    """Yield every value that the files state, each with its place and what it shadows.

    :param root: The tree; ``/`` for this host.
    :param user: See :class:`Query`, as for the other two.
    :raises ValueError: If what is asked about is not in the tree, or a file cannot be parsed.
    """
    if not os.path.isdir(root):
        raise ValueError(f"{root}: is not a directory")
    unit = unit if unit.rpartition(".")[2] in _TYPES else f"{unit}.service"
    query, tree = Query(user, service, unit), Tree(root)
    for place in sorted(PLACES, key=lambda one: one.name != "sessions"):  # What most ask for.
        yield from place.resolve(tree, query)
