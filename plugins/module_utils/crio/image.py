# SPDX-License-Identifier: BSD-2-Clause
"""Foretell the containers of CRI-O in an image from its files."""

from __future__ import annotations

from ..containers.findings import require_container
from ..core.finding import FAIL, PASS, UNKNOWN
from ..core.forecast import Forecast, skip
from ..core.report import START
from ..docker.image import find_doubt
from ..kernel.tree_read import TreeBoot
from ..podman.containers_conf import ConfError
from .causes import UNIT, CrioFacts, find_crio_causes, find_given, find_option, foresee
from .crio_conf import read_all
from .read import PROGRAMS, read_conf_files, read_unit_options

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
    facts = CrioFacts((), boot.nr_open, options=read_unit_options(tree.root))
    doubt = find_doubt(tree.root, UNIT, "crio")
    try:
        facts = facts._replace(stated=read_all(read_conf_files(tree.root)))
    except ConfError as error:
        facts = facts._replace(broken=error)
    for one in wanted:
        status = foresee(one, facts)
        if status != foresee(one, facts._replace(nr_open=boot.nr_open_at_most)):
            yield one, Forecast(UNKNOWN, reason=boot.nr_open_doubt)
            continue
        option = find_option(one, facts)
        if (option and not status) or (doubt and status == PASS):
            says = f"crio is started with {option}, which counts instead of its files"
            yield one, Forecast(UNKNOWN, reason=says if option else doubt)
            continue
        causes = find_crio_causes(one, facts, asked) if status == FAIL else ()
        if status == FAIL and not causes:
            causes = find_crio_causes(one._replace(item=START), facts, asked)
        value = find_given(one, facts.defaults) if causes and not facts.broken else None
        yield one, Forecast(status or UNKNOWN, value, None, causes, "what starts crio decides")
