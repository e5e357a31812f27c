# SPDX-License-Identifier: BSD-2-Clause
"""Plan what drop-ins of systemd must say so that services get what the policy requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.edit import HEADER, Edit
from ..core.plan import SectionPlan, Shortfall, neutralise_all, plan_edits, restore_all
from ..core.reader import Limit
from ..core.values import UNLIMITED, Declaration, NamedTuple, Rlimit
from ..systemd.limits import MANAGER, read_manager_limits, read_unit_limits
from ..systemd.model import Files
from ..systemd.unit_file import Source, order_sources, scan_unit
from ..systemd.unread import format_limit
from ..systemd.want import declare, is_enough
from .lockouts import find_service_lockouts
from .logind_conf import KEY as REMOVE_IPC
from .logind_conf import LOGIND, read_remove_ipc
from .policy import TASKS, ServicesPolicy, UnitRule, find_rule
from .tasks_causes import KEY as TASKS_MAX
from .tasks_causes import MOST, read_default_tasks, read_unit_tasks, resolve_tasks

NAME = "90-mlhost.conf"
TOP = "/etc/systemd"
UNITS = f"{TOP}/system"
USER_CONF = "user.conf"
_STRONGER = (
    "/etc/systemd/system.control/",
    "/run/systemd/system.control/",
    "/run/systemd/transient/",
    "/run/systemd/generator.early/",
)
"""Folders whose drop-ins hide those of the same name in /etc/systemd/system."""


class ServicesState(NamedTuple):
    """What systemd reads on this host.

    ``texts`` are the drop-ins below /etc/systemd that may be edited, ours among them. ``files``
    are all files that decide a unit of the policy, or, by the names system.conf, user.conf and
    logind.conf, a manager. ``highest`` is the number of tasks that the system can hold.
    """

    texts: Mapping[str, str] = {}
    files: Mapping[str, Files] = {}
    highest: int = MOST


class Line(NamedTuple):
    """One line of ours: where it stands, what it says, and what it was made from."""

    owner: str
    item: str
    text: str
    wanted: Limit | int | bool


class Beaten(NamedTuple):
    """A line of ours that does not count, and the one that does, or ends the reading."""

    line: Line
    by: Declaration


def plan_services(
    policy: ServicesPolicy,
    state: ServicesState,
    nr_open: int | None,
    override: bool = False,
    absent: bool = False,
) -> SectionPlan:
    """Return the edits of the drop-ins; those of units that the policy does not name go.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    restored = restore_all(state.texts)
    clean = {path: None if is_ours(path, text) else text for path, text in restored.items()}
    if absent:
        return SectionPlan(_plan(state, clean))
    lines = list(list_lines(policy))
    ours = _write(lines)
    problems = [*find_service_lockouts(policy), *_find_too_high(policy, nr_open)]
    problems += [
        f"{path}: was not written by mlhost.limits; rename it first"
        for path in ours
        if clean.get(path) is not None
    ]
    if problems:
        return SectionPlan(problems=tuple(problems))
    wanted: dict[str, str | None] = {**clean, **ours}
    shortfalls = []
    beaten = _find_beaten(lines, wanted, state)
    while beaten:
        shortfalls += [(one, override and _is_editable(one.by, wanted)) for one in beaten]
        lifted = {one.by for one, neutralized in shortfalls if neutralized}
        present = {path: text for path, text in {**clean, **ours}.items() if text is not None}
        wanted = {**clean, **neutralise_all(present, lifted)}
        told = [one for one, dummy in shortfalls]
        beaten = [one for one in _find_beaten(lines, wanted, state) if one not in told]
    return SectionPlan(
        _plan(state, wanted),
        shortfalls=tuple(Shortfall(one.by, one.line.text, done) for one, done in shortfalls),
        notes=tuple(_find_notes(policy, state)),
    )


def _plan(state: ServicesState, after: Mapping[str, str | None]) -> tuple[Edit, ...]:
    """Return the edits; a folder that we made goes with its last file."""
    return tuple(
        edit._replace(with_folder=edit.after is None) for edit in plan_edits(state.texts, after)
    )


def is_ours(path: str, text: str) -> bool:
    return path.endswith(f"/{NAME}") and text.startswith(HEADER)


def list_lines(policy: ServicesPolicy) -> Iterator[Line]:
    """Yield every line that the policy needs."""
    for owner, rule in ((MANAGER, policy.default), (USER_CONF, policy.user_default)):
        yield from _list_rule(owner, rule, "Default")
    for unit in policy.units:
        yield from _list_rule(unit, find_rule(policy.units, unit, unit), "")
    if policy.remove_ipc is not None:
        word = "yes" if policy.remove_ipc else "no"
        yield Line(LOGIND, REMOVE_IPC, f"{REMOVE_IPC}={word}", policy.remove_ipc)


def _list_rule(owner: str, rule: UnitRule, prefix: str) -> Iterator[Line]:
    for item, limit in rule.limits.items():
        if limit.soft is not None and limit.hard is not None:
            value = format_limit(item, Rlimit(limit.soft, limit.hard))
            yield Line(owner, item, f"{prefix}Limit{item.upper()}={value}", limit)
    if rule.tasks is not None:
        value = "infinity" if rule.tasks == UNLIMITED else str(rule.tasks)
        yield Line(owner, TASKS, f"{prefix}{TASKS_MAX}={value}", rule.tasks)


def find_target(owner: str) -> str:
    """Return the drop-in of ours for a unit, or for a manager."""
    folder = TOP if owner in (MANAGER, USER_CONF, LOGIND) else UNITS
    return f"{folder}/{owner}.d/{NAME}"


def _write(lines: list[Line]) -> dict[str, str]:
    """Return our drop-ins."""
    heads = {MANAGER: "Manager", USER_CONF: "Manager", LOGIND: "Login"}
    texts: dict[str, str] = {}
    for line in lines:
        path = find_target(line.owner)
        kind = "Slice" if line.owner.endswith(".slice") else "Service"
        start = f"{HEADER}\n[{heads.get(line.owner, kind)}]\n"
        texts[path] = f"{texts.get(path, start)}{line.text}\n"
    return texts


def _find_too_high(policy: ServicesPolicy, nr_open: int | None) -> Iterator[str]:
    """Yield each nofile that the kernel refuses: systemd then gives what it has itself."""
    rules = {"default": policy.default, "user_default": policy.user_default}
    rules.update({f"units.{name}": rule for name, rule in policy.units.items()})
    for name, rule in rules.items():
        hard = rule.limits["nofile"].hard if "nofile" in rule.limits else None
        if hard is not None and nr_open is not None and hard > nr_open:
            yield (
                f"services.{name}.nofile: hard {hard} is above fs.nr_open {nr_open}, so systemd"
                " would give what it has itself; lower it or raise kernel.fs.nr_open"
            )


def _find_beaten(
    lines: list[Line], wanted: Mapping[str, str | None], state: ServicesState
) -> list[Beaten]:
    """Return the lines of ours that do not count where what counts is not enough."""
    found = []
    for line in lines:
        files = apply_texts(state.files[line.owner], line.owner, wanted)
        winner = _find_winner(line, files, state.highest)
        if winner:
            found.append(Beaten(line, winner))
    return found


def _find_winner(line: Line, files: Files, highest: int) -> Declaration | None:
    """Return what counts instead of a line of ours and is not enough; or nothing."""
    ranked = _rank(line, files, highest)
    path = find_target(line.owner)
    if ranked and ranked[-1][0].path == path:
        return None
    if not any(at.path == path for at, dummy in ranked):
        fault = _find_fault(line.owner, files)
        if fault:
            return fault
    return ranked[-1][0] if ranked and not ranked[-1][1] else None


def _rank(line: Line, files: Files, highest: int) -> list[tuple[Declaration, bool]]:
    """Return the lines of one limit that systemd heeds, the last counts, and which are enough."""
    of_unit, wanted = line.owner not in (MANAGER, USER_CONF, LOGIND), line.wanted
    kind = line.owner.rpartition(".")[2]
    if line.item == REMOVE_IPC:
        return [(at, at.value == wanted) for at in read_remove_ipc(files)]
    if line.item == TASKS:
        ranked = read_unit_tasks(kind, files) if of_unit else read_default_tasks(files)
        given = [resolve_tasks(str(at.value), highest) for at in ranked]
        return [
            (at, value is not None and value >= int(wanted))  # type: ignore[arg-type]
            for at, value in zip(ranked, given)
        ]
    if of_unit:
        main = files.main or Source(line.owner, "")
        statements = read_unit_limits(kind, main, files.dropins).statements
    else:
        statements = read_manager_limits(files.manager, files.manager_dropins).statements
    mine = [one for one in statements if one.item == line.item]
    return [(declare(one), is_enough(wanted, one.limit)) for one in mine]  # type: ignore[arg-type]


def _find_fault(owner: str, files: Files) -> Declaration | None:
    """Return the line at which systemd gives up, before it comes to a manager's drop-in of ours."""
    if owner not in (MANAGER, USER_CONF, LOGIND):
        return None
    sources = order_sources(files.manager, files.manager_dropins)
    faults = (scan_unit(source.text, source.path).fault for source in sources)
    fault = next(filter(None, faults), None)
    return Declaration(fault.path, fault.line, fault.key, fault.value) if fault else None


def _is_editable(at: Declaration, texts: Mapping[str, str | None]) -> bool:
    """Tell whether a line stands by itself in a file of /etc that may be changed."""
    text = texts.get(at.path)
    if text is None:
        return False
    row = text.split("\n")[at.line - 1]
    return row.replace(" ", "").strip() == at.text.replace(" ", "").strip()


def apply_texts(files: Files, owner: str, texts: Mapping[str, str | None]) -> Files:
    """Return the files of a unit or a manager as they will be."""
    of_unit = owner not in (MANAGER, USER_CONF, LOGIND)
    manager = MANAGER if of_unit else owner
    return files._replace(
        dropins=_apply(files.dropins, find_target(owner) if of_unit else "", texts),
        manager_dropins=_apply(files.manager_dropins, find_target(manager), texts),
    )


def _apply(
    sources: tuple[Source, ...], target: str, texts: Mapping[str, str | None]
) -> tuple[Source, ...]:
    """Return drop-ins, the strongest first, with their new texts and with ours."""
    after = []
    for one in sources:
        text = texts.get(one.path, one.text)
        if text is not None:
            after.append(Source(one.path, text))
    own = texts.get(target)
    if own is None or any(one.path == target for one in after):
        return tuple(after)
    stronger = [one for one in after if one.path.startswith(_STRONGER)]
    return (*stronger, Source(target, own), *(one for one in after if one not in stronger))


def _find_notes(policy: ServicesPolicy, state: ServicesState) -> Iterator[str]:
    """Yield the units that are not there to be started."""
    for unit in policy.units:
        main, stem = state.files[unit].main, unit.rpartition(".")[0]
        if main is None and not stem.endswith("-") and not unit.endswith(".slice"):
            yield f"services.units.{unit}: there is no such unit here; this waits for it"
        elif main is not None and not main.text:
            yield f"services.units.{unit}: {main.path} masks it; this waits until it does not"
