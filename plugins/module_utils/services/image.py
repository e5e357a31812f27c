# SPDX-License-Identifier: BSD-2-Clause
"""Judge the services of an image, which nobody has booted yet, by what its files will give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.cause import cite
from ..core.finding import (
    FAIL,
    FORETOLD,
    PASS,
    UNKNOWN,
    Observation,
    Requirement,
    judge,
    observe_limit,
    require_limits,
)
from ..core.forecast import Forecast, list_extremes, settle
from ..core.values import RLIMITS, UNLIMITED, Declaration, Rlimit
from ..host.files import read_distribution
from ..kernel.tree_read import TreeBoot
from ..processes.causes import Verdict
from ..processes.starters_read import doubt_start, find_switches, list_starters
from ..sessions.model import FD_SETSIZE
from ..systemd.causes import find_unit_causes
from ..systemd.limits import MANAGER
from ..systemd.model import Files, Manager, UnitFacts, predict_unit, rank_statements
from ..systemd.read import NEW_SERVICE
from ..systemd.unit_file import Source, list_slices, merge_units
from ..systemd.unit_read import read_manager_files, read_unit_files
from ..systemd.unread import leave_out_beaten
from .check import NEW, PLACE, SYSTEM
from .logind_causes import find_logind_causes, format_flag
from .logind_conf import KEY, LOGIND, predict_remove_ipc, read_remove_ipc
from .policy import TASKS, ServicesPolicy, UnitRule, find_rule
from .tasks_causes import (
    MOST,
    TasksLevel,
    find_tasks_causes,
    find_tasks_line,
    predict_all,
    predict_level,
)
from .unit_writers_read import UnitWriters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.image import Tree

    Foretold = Iterator[tuple[Requirement, Forecast]]
    from ..core.reader import Limit

_ROOT = "-.slice"


def foretell_unit(wanted: Requirement, limit: Limit, facts: UnitFacts) -> Forecast:
    """Return what a service gets, whatever its manager has.

    :param facts: Of which the manager's own limits and defaults are not looked at.
    """
    facts = facts._replace(files=leave_out_beaten(facts.files))
    ranked, vendor = rank_statements(wanted.item, facts), facts.files.vendor
    if not ranked and wanted.item == "nofile" and vendor.highest_nofile is None:
        reason = f"no file states it, and what systemd gives on {vendor.name} is not known"
        return Forecast(UNKNOWN, reason=reason)
    highest, nr_open = vendor.highest_nofile or 0, facts.manager.nr_open
    scenes = [facts._replace(manager=_manage(nr_open, one, highest)) for one in list_extremes()]
    # What the kernel refuses, a manager that has all takes from its own.
    given = [predict_unit(one) for one in scenes[1:]] if ranked else list(map(predict_unit, scenes))
    seen = [observe_limit(wanted, one, "", "") for one in given]
    statuses = {judge(wanted, one).status for one in seen}
    if len(statuses) > 1 or UNKNOWN in statuses:
        return Forecast(UNKNOWN, reason=f"no file states {wanted.item} {wanted.bound}")
    causes = find_unit_causes(wanted.item, limit, scenes[-1]) if FAIL in statuses else []
    by = ranked[-1].setting if ranked else None
    at = by.declare("") if by else None
    return Forecast(statuses.pop(), seen[-1].value, at, tuple(causes))


def _manage(nr_open: int, limit: Rlimit, highest_nofile: int) -> Manager:
    own: Mapping[str, Rlimit] = {
        **dict.fromkeys(RLIMITS, limit),
        "nofile": Rlimit(*(min(bound, nr_open) for bound in limit)),
    }
    defaults = {**own, "nofile": Rlimit(FD_SETSIZE, highest_nofile)}
    return Manager(defaults, own, nr_open, at_boot=True)


def foretell_tasks(wanted: Requirement, levels: Sequence[TasksLevel]) -> Forecast:
    """Return how many tasks a unit may hold, if that is not a share of what the host can hold."""
    least, most = (predict_all(levels, highest) for highest in (1, MOST))
    if least is None or most is None or least != most:
        return Forecast(UNKNOWN, reason="a share of what the host can hold bounds it")
    low = min(levels, key=lambda level: predict_level(level, MOST) or 0)
    status = judge(wanted, Observation(most, FORETOLD)).status
    causes = find_tasks_causes(wanted.minimum or 0, levels, MOST) if status == FAIL else []
    return Forecast(status, most, find_tasks_line(low), tuple(causes))


def foretell_remove_ipc(wanted: bool, files: Files) -> Forecast:
    """Return whether logind will remove the shared memory of a user who has gone."""
    ranked, given = read_remove_ipc(files), predict_remove_ipc(files)
    if given is None:
        reason = f"no file states {KEY}, and what {files.vendor.name} does then is not known"
        return Forecast(UNKNOWN, reason=reason)
    causes = find_logind_causes(wanted, files, None)
    status = PASS if given == wanted else FAIL
    return Forecast(status, format_flag(given), ranked[-1] if ranked else None, causes)


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
        vendor = read_distribution(tree.root)
        files = Files(None, (), conf, tuple(dropins), vendor=vendor)
        yield wanted, foretell_remove_ipc(asked.remove_ipc, files)


def _require(place: str, rule: UnitRule) -> Iterator[Requirement]:
    yield from require_limits(place, rule.limits)
    if rule.tasks is not None:
        yield Requirement(place, TASKS, "value", rule.tasks)


def _look_at_unit(place: str, unit: str, rule: UnitRule, tree: Tree) -> Foretold:
    """Yield what a unit gets; without a name, one that states nothing."""
    files = _read_files(unit, tree.root)
    session = find_session(files, tree.root)
    needs_file = unit and not unit.endswith(".slice")
    for wanted in _require(place, rule):
        if needs_file and not (files.main and files.main.text):
            reason = f"there is no {unit} in this image, or it is masked"
            yield wanted, Forecast(UNKNOWN, reason=reason)
        elif wanted.item == TASKS:
            tasks = foretell_tasks(wanted, _list_levels(unit, files, tree.root))
            yield wanted, _doubt_files(unit, tasks, tree)
        elif session:
            reason = f"{cite(session)} opens a session, and PAM can change it"
            yield wanted, Forecast(UNKNOWN, reason=reason)
        else:
            boot = tree.at(TreeBoot)
            facts = UnitFacts(
                unit or NEW_SERVICE,
                files,
                Manager({}, {}, boot.nr_open, at_boot=True),
                defaults_of="" if unit else MANAGER,
                nr_open_line=boot.nr_open_line,
            )
            forecast = _foretell_range(wanted, rule.limits[wanted.item], facts, boot)
            forecast = _doubt_files(unit, forecast, tree)
            yield wanted, _doubt_start(wanted.item, rule, forecast, facts, tree)


def _doubt_files(unit: str, forecast: Forecast, tree: Tree) -> Forecast:
    """Return a forecast that foretells no pass where a boot may write the unit's files anew."""
    line = tree.at(UnitWriters).find(unit) if forecast.status == PASS else None
    told = f"{cite(line)} may write unit files at boot" if line else ""
    return Forecast(UNKNOWN, reason=told) if line else forecast


def _foretell_range(
    wanted: Requirement, limit: Limit, facts: UnitFacts, boot: TreeBoot
) -> Forecast:
    """Return what a service gets, whatever fs.nr_open will be of what it may be."""
    highest = facts.manager._replace(nr_open=boot.nr_open_at_most)
    least = foretell_unit(wanted, limit, facts)
    most = foretell_unit(wanted, limit, facts._replace(manager=highest))
    return settle(least, most, boot.nr_open_doubt)


def find_session(files: Files, root: str) -> Declaration | None:
    """Return the line for which PAM may set a unit's limits anew: its own, or one that runs su."""
    settings = merge_units(files.main, files.dropins)
    named = [one for one in settings if (one.section, one.key) == ("Service", "PAMName")]
    if named and named[-1].value:
        return named[-1].declare("")
    return next(find_switches(settings, root), None)


def _doubt_start(
    item: str, rule: UnitRule, forecast: Forecast, facts: UnitFacts, tree: Tree
) -> Forecast:
    """Return a forecast that foretells no pass which what the unit starts may spoil."""
    if forecast.status not in (PASS, FAIL) or facts.defaults_of:
        return forecast
    lines = list_starters(facts, root=tree.root)
    if forecast.status == FAIL:
        about = [line.at for line in lines if line.item == item]
        reason = f"{cite(about[-1])} sets the limit after systemd has" if about else ""
        return Forecast(UNKNOWN, reason=reason) if about else forecast
    most = Verdict((), Rlimit(UNLIMITED, rule.limits[item].max or UNLIMITED))
    told = doubt_start(item, rule.limits[item], most, lines, -1.0, facts)
    return Forecast(UNKNOWN, reason=told.doubts[0].text) if told.doubts else forecast


def _read_files(unit: str, root: str) -> Files:
    conf, conf_dropins = read_manager_files(root)
    main, dropins = read_unit_files(unit or NEW_SERVICE, root)
    main = main if unit else Source(NEW_SERVICE, "")
    vendor = read_distribution(root)
    return Files(main, tuple(dropins), conf, tuple(conf_dropins), vendor=vendor)


def _list_levels(unit: str, files: Files, root: str) -> list[TasksLevel]:
    """Return the unit, its slices and the root of all: what each may hold counts."""
    own = TasksLevel(unit or NEW_SERVICE, files, defaults_of="" if unit else MANAGER)
    if unit.endswith(".slice"):
        return [own]
    slices = list_slices(own.unit, merge_units(files.main, files.dropins))
    return [own, *(TasksLevel(one, _read_files(one, root)) for one in (*slices, _ROOT))]
