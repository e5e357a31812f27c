# SPDX-License-Identifier: BSD-2-Clause
"""Say what the files of a tree state for units, for systemd's managers and for logind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.cause import cite
from ..core.resolved import Effect, Query, describe
from ..core.values import ITEMS, UNLIMITED, Bound, Declaration
from ..kernel.tree_read import TreeBoot
from ..processes.starters_read import list_starters
from ..sessions.shell_limits import ShellLine
from ..systemd.limits import (
    MANAGER,
    Ignored,
    Reading,
    read_manager_limits,
    read_unit_limits,
    resolve_unit_limits,
)
from ..systemd.model import Files, Manager, UnitFacts
from ..systemd.unit_file import Source
from ..systemd.unit_read import read_manager_files, read_unit_files
from .image import find_session
from .logind_conf import KEY as REMOVE_IPC
from .logind_conf import LOGIND, read_remove_ipc
from .plan import USER_CONF
from .policy import TASKS
from .tasks_causes import read_default_tasks, read_unit_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.image import Tree


def resolve_services(tree: Tree, query: Query) -> Iterator[dict[str, object]]:
    """Yield the limits of a unit, or of all that state none, and what logind removes."""
    units = [query.unit, USER_CONF] if query.unit == MANAGER else [query.unit]
    for unit in dict.fromkeys(units):
        yield from _resolve_unit(tree, unit)
    yield from _resolve_logind(tree.root)


def _resolve_unit(tree: Tree, unit: str) -> Iterator[dict[str, object]]:
    """Yield the limits that systemd gives a unit, and the lines that it ignores.

    :param unit: A unit of the system, or the file of a manager, the users' user.conf too.
    :raises ValueError: If it is not in the tree.
    """
    root, boot = tree.root, tree.at(TreeBoot)
    place, is_manager = f"unit:{unit}", unit in (MANAGER, USER_CONF)
    conf, conf_dropins = read_manager_files(root, unit if is_manager else MANAGER)
    manager = read_manager_limits(conf, conf_dropins)
    reading, files = Reading([], manager.ignored), Files(None, (), conf, tuple(conf_dropins))
    if not is_manager:
        main, dropins = read_unit_files(unit, root)
        if main is None and unit.endswith(".slice"):
            main = Source(unit, "[Slice]")  # systemd makes slices by itself.
        if main is None or not main.text:
            yield {"place": place, "reason": _tell_mask(unit, main, root)}
            return
        reading = read_unit_limits(unit.rpartition(".")[2], main, dropins)
        files = files._replace(main=main, dropins=tuple(dropins))
    for line in reading.ignored:
        yield {"place": place, "reason": f"ignored is {_quote(line)}"}
    if reading.refused:
        yield {"place": place, "reason": f"is not loaded: {_quote(reading.refused)}"}
        return
    facts = UnitFacts("", files, Manager({}, {}, boot.nr_open, at_boot=True))
    lines = () if is_manager else list_starters(facts, root=root)
    session = None if is_manager else find_session(files, root)
    for item, kind, bound in resolve_unit_limits(manager, reading):
        effect = None if is_manager else _find_effect(item, bound, boot, lines, session)
        yield describe(place, item, kind, bound, ITEMS[item].unit, effect)
    kind = unit.rpartition(".")[2]
    ranked = [] if kind == "slice" else read_default_tasks(files)
    ranked += [] if is_manager else read_unit_tasks(kind, files)
    if ranked:
        yield describe(place, TASKS, "value", Bound(ranked[-1], tuple(ranked[:-1])), "")


def _tell_mask(unit: str, main: Source | None, root: str) -> str:
    if main is None:
        raise ValueError(f"unit {unit}: has no file in {root}; one that has is accepted")
    return f"{main.path} masks it"


def _find_effect(
    item: str,
    bound: Bound,
    boot: TreeBoot,
    lines: Sequence[ShellLine],
    session: Declaration | None,
) -> Effect | None:
    """Return what a unit has in the place of what is stated, where it is something else.

    :param lines: What it starts that sets limits.
    :param session: The line that opens a session, if one does.
    """
    value = bound.winner.value
    if item == "nofile" and isinstance(value, int) and boot.nr_open_at_most < value < UNLIMITED:
        is_sure = boot.nr_open == boot.nr_open_at_most
        why = f"the kernel refuses more than {boot.nr_open_at_most}, fs.nr_open"
        return Effect(boot.nr_open if is_sure else None, f"{why}: systemd gives what it has itself")
    if session:
        return Effect(None, f"{cite(session)} opens a session, and PAM can change it")
    about = [one.at for one in lines if one.item == item]
    return Effect(None, f"{cite(about[-1])} may set it after systemd has") if about else None


def _resolve_logind(root: str) -> Iterator[dict[str, object]]:
    """Yield whether logind removes a user's shared memory after the last login."""
    conf, dropins = read_manager_files(root, LOGIND)
    ranked = [
        one._replace(value=one.text.partition("=")[2])
        for one in read_remove_ipc(Files(None, (), conf, tuple(dropins)))
    ]
    if ranked:
        yield describe("logind", REMOVE_IPC, "value", Bound(ranked[-1], tuple(ranked[:-1])), "")


def _quote(line: Ignored) -> str:
    return f'{line.path}:{line.line} "{line.text}": {line.reason}'
