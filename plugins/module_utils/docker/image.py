# SPDX-License-Identifier: BSD-2-Clause
"""Foretell the containers of Docker in an image from its files."""

from __future__ import annotations

from ..containers.findings import require_container
from ..containers.policy import TASKS, ContainerPolicy
from ..core.cause import cite
from ..core.finding import FAIL, PASS, UNKNOWN
from ..core.forecast import Forecast, skip
from ..core.values import Declaration
from ..kernel.tree_read import TreeBoot
from ..systemd.unit_file import merge_units
from ..systemd.unit_read import read_unit_files
from .causes import find_docker_causes
from .daemon_doubts_read import find_daemon_doubt
from .dockerd_flags import find_start, starts_program
from .model import find_obstacles, foretell, predict
from .site import Site
from .unit_read import PROGRAMS, UNIT, read_world

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
    boot = tree.at(TreeBoot)
    world = read_world(tree.root, boot.nr_open)
    highest = world._replace(nr_open=boot.nr_open_at_most)
    doubt = find_doubt(tree.root, UNIT, "dockerd") or find_daemon_doubt(world, tree.root)
    for one in wanted:
        if one.item == TASKS:
            yield one, Forecast(UNKNOWN, reason="what starts it decides, and the slice above it")
            continue
        status = foretell(one, world)
        if status != foretell(one, highest):
            yield one, Forecast(UNKNOWN, reason=boot.nr_open_doubt)
            continue
        if status == PASS and doubt:
            yield one, Forecast(UNKNOWN, reason=doubt)
            continue
        causes = tuple(find_docker_causes(one, world, Site(asked))) if status == FAIL else ()
        given = () if find_obstacles(world) else predict(world, one.item)
        value = one.pick(given[0]) if given else None
        yield one, Forecast(status, value, None, causes, "what containerd has decides")


def find_doubt(root: str, unit: str, program: str) -> str:
    """Return why a tree does not tell how its daemon will be started; or nothing."""
    main, dropins = read_unit_files(unit, root)
    if main is None:
        return ""
    settings = merge_units(main, dropins)
    start = find_start(settings)
    if start is None:
        return f"{unit} is masked, or starts nothing"
    if starts_program(settings, program):
        return ""
    at = Declaration(start.path, start.line, f"ExecStart={start.value}", "")
    return f"{cite(at)} may give {program} flags of its own"
