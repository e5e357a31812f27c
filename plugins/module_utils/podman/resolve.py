# SPDX-License-Identifier: BSD-2-Clause
"""Say what containers.conf of a tree states for root's containers of Podman."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.quote import one_line
from ..core.resolved import Effect, describe
from ..core.values import ITEMS, UNLIMITED, Bound, Declaration
from ..kernel.tree_read import TreeBoot
from .containers_conf import ConfError, Stated, Ulimit, read_all, resolve
from .read import read_tree_conf_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.image import Tree

PLACE = "new-container:podman"
_BYTES = "bytes"


def resolve_podman(tree: Tree) -> Iterator[dict[str, object]]:
    """Yield each limit, the size of /dev/shm and the tasks, with what a later file replaced."""
    try:
        stated = read_all(read_tree_conf_files(tree.root))
    except ConfError as error:
        yield {"place": PLACE, "reason": f"{one_line(str(error))}: podman stops at it"}
        return
    given = resolve(stated)
    for item, ulimit in given.ulimits.items():
        effect = _find_effect(ulimit, tree.at(TreeBoot).nr_open)
        for kind, value in ulimit.limit._asdict().items():
            winner = ulimit.at._replace(value=value)
            bound = Bound(winner, tuple(_list_shadowed(stated, ulimit)))
            entry = describe(PLACE, item, kind, bound, ITEMS[item].unit, effect)
            if value == UNLIMITED:
                entry["value"] = "unlimited"  # Here it is not the value of fs.nr_open.
            yield entry
    for item, at, others, unit in (
        ("shm_size", given.shm, [one.shm for one in stated], _BYTES),
        ("tasks", given.tasks, [one.tasks for one in stated], ""),
    ):
        if at:
            shadowed = tuple(one for one in others if one and one != at)
            yield describe(PLACE, item, "value", Bound(at, shadowed), unit)


def _list_shadowed(stated: tuple[Stated, ...], winner: Ulimit) -> Iterator[Declaration]:
    """Yield what other lines state of a limit: of a list a later one replaces the whole."""
    for one in stated:
        for ulimit in one.block.ulimits if one.block else ():
            if ulimit.item == winner.item and ulimit != winner:
                yield ulimit.at


def _find_effect(ulimit: Ulimit, nr_open: int) -> Effect | None:
    if ulimit.item != "nofile" or ulimit.limit.hard <= nr_open:
        return None
    return Effect(None, f"no container starts with more than {nr_open}, fs.nr_open")
