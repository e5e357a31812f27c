# SPDX-License-Identifier: BSD-2-Clause
"""Foretell the containers of CRI-O in an image from its files."""

from __future__ import annotations

from ..containers.findings import require_container
from ..core.finding import FAIL, UNKNOWN
from ..core.forecast import Forecast, skip
from ..core.report import START
from ..kernel.tree_read import TreeBoot
from ..podman.containers_conf import ConfError
from .causes import CrioFacts, find_crio_causes, find_given, foresee
from .crio_conf import read_all
from .read import PROGRAMS, read_conf_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.policy import ContainerPolicy
    from ..host.image import Tree
    from ..host.place import Foretold


def foresee_crio(asked: ContainerPolicy, tree: Tree) -> Foretold:
    """Yield what a new container will have by crio.conf and its drop-ins."""
    wanted = require_container("new-container:crio", asked)
    if not tree.has(*PROGRAMS):
        yield from skip(wanted, "no crio in this image")
        return
    boot = tree.at(TreeBoot)
    facts = CrioFacts((), boot.nr_open)
    try:
        facts = facts._replace(stated=read_all(read_conf_files(tree.root)))
    except ConfError as error:
        facts = facts._replace(broken=error)
    for one in wanted:
        status = foresee(one, facts)
        if status != foresee(one, facts._replace(nr_open=boot.nr_open_at_most)):
            yield one, Forecast(UNKNOWN, reason=boot.nr_open_doubt)
            continue
        causes = find_crio_causes(one, facts, asked) if status == FAIL else ()
        if status == FAIL and not causes:
            causes = find_crio_causes(one._replace(item=START), facts, asked)
        value = find_given(one, facts.defaults) if causes and not facts.broken else None
        yield one, Forecast(status or UNKNOWN, value, None, causes, "what starts crio decides")
