# SPDX-License-Identifier: BSD-2-Clause
"""Foretell the containers of Podman in an image from its files."""

from __future__ import annotations

from ..containers.findings import require_container
from ..core.finding import FAIL, UNKNOWN
from ..core.forecast import Forecast, skip
from ..kernel.host_read import TreeBoot
from .causes import PodmanFacts, find_podman_causes, foresee
from .containers_conf import ConfError, order_files, read_conf
from .read import read_tree_conf_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.policy import ContainerPolicy
    from ..host.image import Tree
    from ..host.place import Foretold

_PODMAN = ("/usr/bin/podman", "/usr/local/bin/podman", "/usr/sbin/podman")


def foresee_podman(asked: ContainerPolicy, tree: Tree) -> Foretold:
    """Yield what a new container will have by containers.conf."""
    wanted = require_container("new-container:podman", asked)
    if not tree.has(*_PODMAN):
        yield from skip(wanted, "no podman in this image")
        return
    files = read_tree_conf_files(tree.root)
    facts = PodmanFacts((), tree.at(TreeBoot).nr_open)
    try:
        facts = facts._replace(
            stated=tuple(read_conf(path, files[path]) for path in order_files(files))
        )
    except ConfError as error:
        facts = facts._replace(broken=error)
    for one in wanted:
        status = FAIL if facts.broken else foresee(one, facts, tree.at(TreeBoot).nr_open) or UNKNOWN
        causes = tuple(find_podman_causes(one, facts, asked)) if status == FAIL else ()
        yield one, Forecast(status, None, None, causes, "what starts it decides")
