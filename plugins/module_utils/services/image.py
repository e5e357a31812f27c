# SPDX-License-Identifier: BSD-2-Clause
"""Judge the services of an image, which nobody has booted yet, by what its files will give."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.finding import UNKNOWN, Requirement, require_limits
from ..core.forecast import Forecast
from ..kernel.tree_read import TreeBoot
from ..systemd.limits import MANAGER
from ..systemd.model import Files, Manager, UnitFacts
from ..systemd.read import NEW_SERVICE
from ..systemd.unit_file import Source, list_slices, merge_units
from ..systemd.unit_read import read_manager_files, read_unit_files
from .check import NEW, PLACE, SYSTEM
from .forecast import foretell_remove_ipc, foretell_tasks, foretell_unit
from .logind_causes import format_flag
from .logind_conf import KEY, LOGIND
from .policy import TASKS, ServicesPolicy, UnitRule, find_rule
from .tasks_causes import TasksLevel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.tree import Tree

    Foretold = Iterator[tuple[Requirement, Forecast]]


def look_at_services(asked: ServicesPolicy, tree: Tree) -> Foretold:
    """Yield what the files give the units that a policy names, new services, and of logind."""
    for name in asked.units:
        yield from _look_at_unit(f"{PLACE}{name}", name, find_rule(asked.units, name, name), tree)
    yield from _look_at_unit(f"{NEW}{SYSTEM}", "", asked.default, tree)
    for wanted in _require(f"{NEW}*", asked.user_default):
        yield wanted, Forecast(UNKNOWN)
    if asked.remove_ipc is not None:
        conf, dropins = read_manager_files(tree.root, LOGIND)
        wanted = Requirement("logind", KEY, "value", exact=format_flag(asked.remove_ipc))
        files = Files(None, (), conf, tuple(dropins))
        yield wanted, foretell_remove_ipc(asked.remove_ipc, files)


def _require(place: str, rule: UnitRule) -> Iterator[Requirement]:
    yield from require_limits(place, rule.limits)
    if rule.tasks is not None:
        yield Requirement(place, TASKS, "value", rule.tasks)


def _look_at_unit(place: str, unit: str, rule: UnitRule, tree: Tree) -> Foretold:
    """Yield what a unit gets; without a name, one that states nothing."""
    files = _read_files(unit, tree.root)
    needs_file = unit and not unit.endswith(".slice")
    for wanted in _require(place, rule):
        if needs_file and not (files.main and files.main.text):
            reason = f"there is no {unit} in this image, or it is masked"
            yield wanted, Forecast(UNKNOWN, reason=reason)
        elif wanted.item == TASKS:
            yield wanted, foretell_tasks(wanted, _list_levels(unit, files, tree.root))
        elif files.main and "PAMName" in files.main.text:
            yield wanted, Forecast(UNKNOWN, reason="PAM has a say in it")
        else:
            manager = Manager({}, {}, tree.at(TreeBoot).nr_open, at_boot=True)
            default = "" if unit else MANAGER
            facts = UnitFacts(unit or NEW_SERVICE, files, manager, defaults_of=default)
            yield wanted, foretell_unit(wanted, rule.limits[wanted.item], facts)


def _read_files(unit: str, root: str) -> Files:
    conf, conf_dropins = read_manager_files(root)
    main, dropins = read_unit_files(unit or NEW_SERVICE, root)
    main = main if unit else Source(NEW_SERVICE, "")
    return Files(main, tuple(dropins), conf, tuple(conf_dropins))


def _list_levels(unit: str, files: Files, root: str) -> list[TasksLevel]:
    """Return the unit and its slices: what each may hold counts."""
    own = TasksLevel(unit or NEW_SERVICE, files, defaults_of="" if unit else MANAGER)
    if unit.endswith(".slice"):
        return [own]
    slices = list_slices(own.unit, merge_units(files.main, files.dropins))
    return [own, *(TasksLevel(one, _read_files(one, root)) for one in slices)]
