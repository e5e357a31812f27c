# SPDX-License-Identifier: BSD-2-Clause
"""Foretell the containers of Docker in an image from its files."""

from __future__ import annotations

from ..containers.findings import require_container
from ..containers.policy import TASKS, ContainerPolicy
from ..core.finding import FAIL, UNKNOWN
from ..core.forecast import Forecast, skip
from ..kernel.host_read import TreeBoot
from .causes import find_docker_causes
from .model import find_obstacles, foretell, predict
from .site import Site
from .unit_read import PROGRAMS, read_world

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.image import Tree
    from ..host.place import Foretold


def foresee_docker(asked: ContainerPolicy, tree: Tree) -> Foretold:
    """Yield what a new container will have by daemon.json and the flags of dockerd."""
    wanted = require_container("new-container:docker", asked)
    if not tree.has(*PROGRAMS):
        yield from skip(wanted, "no dockerd in this image")
        return
    world = read_world(tree.root, tree.at(TreeBoot).nr_open)
    for one in wanted:
        if one.item == TASKS:
            yield one, Forecast(UNKNOWN, reason="what starts it decides, and the slice above it")
            continue
        status = foretell(one, world)
        causes = tuple(find_docker_causes(one, world, Site(asked))) if status == FAIL else ()
        given = () if find_obstacles(world) else predict(world, one.item)
        value = one.pick(given[0]) if given else None
        yield one, Forecast(status, value, None, causes, "what containerd has decides")
