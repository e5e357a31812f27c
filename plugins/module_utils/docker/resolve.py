# SPDX-License-Identifier: BSD-2-Clause
"""Say what the files of a tree state for containers of Docker."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.quote import one_line
from ..core.resolved import Effect, describe
from ..core.values import ITEMS, UNLIMITED, Bound
from ..kernel.tree_read import TreeBoot
from .daemon_doubts_read import find_daemon_doubt
from .daemon_json import read_defaults
from .flags import read_flag_defaults
from .image import find_doubt
from .model import find_obstacles
from .unit_read import UNIT, read_world

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.image import Tree

PLACE = "new-container:docker"
_STOPS = {"dockerd": "dockerd does not start", "containers": "no container starts"}


def resolve_docker(tree: Tree) -> Iterator[dict[str, object]]:
    """Yield what daemon.json and the flags of dockerd state for a new container."""
    world = read_world(tree.root, tree.at(TreeBoot).nr_open_at_most)
    obstacles = find_obstacles(world)
    for one in obstacles:
        told = "" if _STOPS[one.stops] in one.text else f": {_STOPS[one.stops]}"
        yield {"place": PLACE, "reason": f"{one_line(one.text)}{told}"}
    if any(one.stops == "dockerd" for one in obstacles):
        return  # Nothing that it states counts, and it may be no JSON.
    doubt = find_doubt(tree.root, UNIT, "dockerd") or find_daemon_doubt(world, tree.root)
    effect = Effect(None, doubt) if doubt else None
    effect = Effect(None, _STOPS[obstacles[0].stops]) if obstacles else effect
    for default in [*read_defaults(world.text or "", world.path), *read_flag_defaults(world.flags)]:
        unit = "bytes" if default.name == "shm_size" else ITEMS[default.name].unit
        pairs = [("value", default.limit.hard)]
        if default.name != "shm_size":
            pairs = list(default.limit._asdict().items())
        for kind, value in pairs:
            bound = Bound(default.declaration._replace(value=value))
            entry = describe(PLACE, default.name, kind, bound, unit, effect)
            if default.name != "shm_size" and value == UNLIMITED:
                entry["value"] = "unlimited"  # Here it is not the value of fs.nr_open.
            yield entry
