# SPDX-License-Identifier: BSD-2-Clause
"""Say why a new container of CRI-O has less than a policy asks, or does not start at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..containers.policy import TASKS, ContainerPolicy
from ..core.cause import Cause, Remedy, cite
from ..core.finding import FAIL, PASS, Requirement
from ..core.report import START
from ..core.values import ITEMS, UNLIMITED, Declaration, NamedTuple, Rlimit, format_quantity
from ..podman.causes import (
    PodmanFacts,
    edit_at,
    find_stopping,
    insert_entry,
    rewrite_entry,
    state_entry,
)
from ..podman.containers_conf import (
    LIMITS_KEY,
    TASKS_KEY,
    ConfError,
    Defaults,
    Stated,
    Ulimit,
    find_tasks,
    format_entry,
    format_tasks,
    resolve,
)
from .crio_conf import DEFAULT_TASKS, DROP_INS, OPTIONS, TABLE

CODES = {
    "crio-conf-unreadable": "a file of crio.conf cannot be read, and CRI-O does not start with it",
    "crio-conf-line": "a line of crio.conf or of a drop-in gives containers something else",
    "crio-list-replaced": "a later file's list of limits leaves out what an earlier one states",
    "crio-option": "an option or a variable of crio's own counts, and no file",
    "crio-not-stated": "no file of crio.conf states it, and what crio has is too little",
    "crio-not-restarted": "the files give enough by now, and crio has run since before",
    "crio-above-ceiling": "the files ask for more than may be given, so that no container starts",
}
UNIT = "crio.service"
_LIMITS_FILE = f"{DROP_INS}/95-limits.conf"
_RESTART = ("systemctl", "restart", UNIT)
ELSEWHERE = ("config", "config-dir")
"""The options that have other files read."""
_KEEP = "start running pods anew"


class CrioFacts(NamedTuple):
    """What decides a new container of CRI-O.

    ``options`` are those of crio that count more than its files, by name, as they are given;
    ``ceilings`` the limits of crio where it may give no more. ``since`` says when it started,
    empty where it does not run.
    """

    stated: tuple[Stated, ...] = ()
    nr_open: int = UNLIMITED
    broken: ConfError | None = None
    options: Mapping[str, str] = {}
    ceilings: Mapping[str, Rlimit] = {}
    since: str = ""

    @property
    def defaults(self) -> Defaults:
        return resolve(self.stated)


def find_crio_causes(
    wanted: Requirement, facts: CrioFacts, policy: ContainerPolicy
) -> tuple[Cause, ...]:
    """Return what keeps a new container from what is asked; nothing where the files would do."""
    option = find_option(wanted, facts)
    if facts.broken:
        return (_blame_broken(facts.broken),)
    if option:
        return (_blame_option(option),)
    if wanted.item == START:
        found = tuple(_find_stoppers(facts, policy))
    elif wanted.item == TASKS:
        found = tuple(_explain_tasks(wanted, facts))
    else:
        found = tuple(_explain_limit(wanted, facts, policy))
    return found or tuple(_blame_age(facts))


def find_option(wanted: Requirement, facts: CrioFacts) -> str:
    """Return the option of crio's that counts instead of its files; or nothing."""
    names = (*ELSEWHERE, OPTIONS[TASKS_KEY if wanted.item == TASKS else LIMITS_KEY])
    return next((facts.options[name] for name in names if name in facts.options), "")


def find_given(wanted: Requirement, given: Defaults) -> int | None:
    """Return what the files give a new container; ``None`` where they do not say."""
    if wanted.item == TASKS:
        return find_tasks(given.tasks, DEFAULT_TASKS)
    ulimit = given.ulimits.get(wanted.item)
    return wanted.pick(ulimit.limit) if ulimit else None


def foresee(wanted: Requirement, facts: CrioFacts) -> str:
    """Return whether a new container will meet this; empty where the files do not say."""
    if facts.broken and facts.options.keys().isdisjoint(ELSEWHERE):
        return FAIL
    if find_option(wanted, facts):
        return ""
    starts = not find_excess(facts.stated, facts)
    value = find_given(wanted, facts.defaults)
    if wanted.item == START or not starts:
        return PASS if starts else FAIL
    return "" if value is None else PASS if wanted.is_met_by(value) else FAIL


def find_excess(stated: tuple[Stated, ...], facts: CrioFacts) -> dict[str, Ulimit]:
    """Return the entries on account of which no container starts."""
    return find_stopping(PodmanFacts(stated, facts.nr_open, session=facts.ceilings))


def describe_excess(ulimit: Ulimit, facts: CrioFacts) -> str:
    """Say above what an entry is."""
    item, unit = ulimit.item, ITEMS[ulimit.item].unit
    text = f"{item} {format_quantity(ulimit.limit.hard, unit)} is above"
    if item == "nofile" and ulimit.limit.hard > facts.nr_open:
        return f"{text} fs.nr_open, {facts.nr_open}"
    own = format_quantity(facts.ceilings[item].hard, unit)
    return f"{text} crio's own hard limit, {own}, which it may not raise"


def _find_stoppers(facts: CrioFacts, policy: ContainerPolicy) -> Iterator[Cause]:
    for item, ulimit in find_excess(facts.stated, facts).items():
        ceiling = facts.ceilings[item].hard if item in facts.ceilings else UNLIMITED
        most = min(ceiling, facts.nr_open) if item == "nofile" else ceiling
        target = policy.choose(item, ulimit.limit, most)
        text = f"{cite(ulimit.at)}: {describe_excess(ulimit, facts)}"
        remedy = _then_restart(rewrite_entry(ulimit, target))
        yield Cause("crio-above-ceiling", text, remedy, ulimit.at)


def _then_restart(remedy: Remedy) -> Remedy:
    """Return a remedy with the restart without which CRI-O reads no limit: SIGHUP does not do."""
    commands = (*remedy.commands, _RESTART) if remedy.commands else ()
    return Remedy(f"{remedy.text}, and restart crio", commands, _KEEP)


def _blame_broken(error: ConfError) -> Cause:
    text = f"{cite(error.at)}: {error.reason}" if error.at.text else str(error)
    remedy = Remedy("make it what crio.conf(5) accepts, or take the line out")
    return Cause("crio-conf-unreadable", text, remedy, error.at)


def _blame_option(option: str) -> Cause:
    text = f"crio was started with {option}, which takes the place of what all files state"
    remedy = Remedy(f"take it out of what {UNIT} starts, or put it right there")
    return Cause("crio-option", text, remedy)


def _blame_age(facts: CrioFacts) -> Iterator[Cause]:
    if facts.since:
        text = f"crio has run since {facts.since}, and its files give enough by now"
        yield Cause("crio-not-restarted", text, Remedy("restart crio", (_RESTART,), _KEEP))


def _explain_limit(
    wanted: Requirement, facts: CrioFacts, policy: ContainerPolicy
) -> Iterator[Cause]:
    given, item = facts.defaults, wanted.item
    winner = given.ulimits.get(item)
    shadows = _find_earlier(wanted, facts)
    if winner:
        if not wanted.is_met_by(wanted.pick(winner.limit)):
            text = f"{cite(winner.at)} gives containers {format_entry(item, winner.limit)}"
            remedy = _then_restart(rewrite_entry(winner, policy.choose(item, winner.limit)))
            yield Cause("crio-conf-line", text, remedy, winner.at, shadows)
        return
    most = facts.nr_open if item == "nofile" else UNLIMITED
    entry = format_entry(item, policy.choose(item, Rlimit(most, most)))
    block = given.block
    if block and shadows:
        text = f"{cite(block.at)} replaces the list that states {item}, and leaves it out"
        remedy = _then_restart(insert_entry(entry, block.at))
        yield Cause("crio-list-replaced", text, remedy, block.at, shadows)
        return
    text = f"no file of crio.conf states {item}, so that containers have what crio has"
    add = insert_entry(entry, block.at) if block else state_entry(entry, _LIMITS_FILE, TABLE)
    yield Cause("crio-not-stated", text, _then_restart(add))


def _find_earlier(wanted: Requirement, facts: CrioFacts) -> tuple[Declaration, ...]:
    """Return the entries that state enough and lose, the strongest last."""
    return tuple(
        ulimit.at
        for one in facts.stated[:-1]
        for ulimit in (one.block.ulimits if one.block else ())
        if ulimit.item == wanted.item and wanted.is_met_by(wanted.pick(ulimit.limit))
    )


def _explain_tasks(wanted: Requirement, facts: CrioFacts) -> Iterator[Cause]:
    at, value = facts.defaults.tasks, find_tasks(facts.defaults.tasks, DEFAULT_TASKS)
    if at is None or value is None or wanted.is_met_by(value):
        return
    number = format_tasks(wanted.minimum or 0)
    remedy = Remedy(f"make it {TASKS_KEY} = {number}")
    if re.match(rf"\s*{TASKS_KEY}\s*=", at.text, re.IGNORECASE):
        remedy = edit_at(at, f"s/^\\([^=]*=\\).*/\\1 {number}/", remedy.text)
    text = f"{cite(at)} bounds containers to {value} processes and threads"
    yield Cause("crio-conf-line", text, _then_restart(remedy), at)
