# SPDX-License-Identifier: BSD-2-Clause
"""Foretell the containers of Podman in an image from its files."""

from __future__ import annotations

from ..containers.findings import require_container
from ..core.finding import FAIL, PASS, UNKNOWN
from ..core.forecast import Forecast, skip
from ..core.report import START
from ..kernel.tree_read import TreeBoot
from .causes import PodmanFacts, find_given, find_podman_causes, foresee, tell_environment
from .containers_conf import ConfError, read_all
from .environment_read import find_named_files
from .read import PROGRAMS, read_tree_conf_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.policy import ContainerPolicy
    from ..host.image import Tree
    from ..host.place import Foretold


_ROOTS_OWN = "/root/.config/containers/containers.conf"


def foresee_podman(asked: ContainerPolicy, tree: Tree) -> Foretold:
    """Yield what a new container will have by containers.conf."""
    wanted = require_container("new-container:podman", asked)
    if not tree.has(*PROGRAMS):
        yield from skip(wanted, "no podman in this image")
        return
    boot = tree.at(TreeBoot)
    facts = PodmanFacts((), boot.nr_open)
    try:
        facts = facts._replace(stated=read_all(read_tree_conf_files(tree.root)))
    except ConfError as error:
        facts = facts._replace(broken=error)
    doubt = _find_doubt(tree)
    for one in wanted:
        status = FAIL if facts.broken else foresee(one, facts, boot.nr_open) or UNKNOWN
        if not facts.broken and status != (foresee(one, facts, boot.nr_open_at_most) or UNKNOWN):
            yield one, Forecast(UNKNOWN, reason=boot.nr_open_doubt)
            continue
        if doubt and status == PASS:
            yield one, Forecast(UNKNOWN, reason=doubt)
            continue
        stops = one._replace(item=START)
        causes = find_podman_causes(one, facts, asked) or find_podman_causes(stops, facts, asked)
        causes = causes if status == FAIL else ()
        value = find_given(one, facts.defaults) if causes and not facts.broken else None
        yield one, Forecast(status, value, None, causes, "what starts it decides")


def _find_doubt(tree: Tree) -> str:
    """Return why root's Podman may read more than the files of everybody; or nothing."""
    named = next(find_named_files(tree.root), None)
    if named:
        return tell_environment(named)
    own = next(filter(tree.has, (_ROOTS_OWN, f"{_ROOTS_OWN}.d")), "")
    return f"{own} counts for containers of root since Podman 4.9" if own else ""
