# SPDX-License-Identifier: BSD-2-Clause
"""Say why processes of services fall short: their unit's files, or that they are older."""

from __future__ import annotations

import pwd
from collections.abc import Callable

from ..core.line_edit import as_user
from ..core.reader import Limit
from ..core.values import UNLIMITED, NamedTuple, Rlimit, format_pair
from ..host.look import format_time, read_limits, read_start_time
from ..systemd.causes import find_unit_causes
from ..systemd.model import UnitFacts, find_user_defaults, outlive_boot, predict_unit
from ..systemd.read import (
    Seen,
    World,
    gather_user_default,
    gather_user_unit,
    list_unit_directories,
    predict_given,
)
from ..systemd.sources_read import find_change
from ..systemd.want import is_enough
from .causes import Moment, Run, Verdict, explain_run, find_start_causes, finish
from .logins_read import find_session_change
from .new_services import explain_new
from .old_session_causes import START_AGAIN, blame_user_manager
from .read import can_set_limits, find_ancestors, find_main
from .starters_read import doubt_start, list_starters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .causes import Commands

_RELOAD: Commands = (("systemctl", "daemon-reload"),)
_NEVER_RESTARTED = ("dbus.service", "dbus-broker.service")
"""What depends on them does not come back: they wait for a boot."""


class Scene(NamedTuple):
    """The service of a process: what decides it, now and after a boot, and how it is restarted.

    ``uid`` is the user whose manager runs it, ``None`` for the system's.
    """

    facts: UnitFacts
    booted: UnitFacts | None
    reload: Commands
    restart: Commands
    uid: int | None = None


def judge_unit(seen: Seen, unit: str, world: World) -> dict[str, Verdict]:
    """Return what is to be said of a service's process, limit by limit."""
    known = world.find_unit(unit)
    if known is None:
        return {}
    restart: Commands = () if unit in _NEVER_RESTARTED else (("systemctl", "restart", unit),)
    scene = Scene(known[0], known[1], _RELOAD, restart)
    told = _judge_all(seen, scene, world)
    return told if restart else {item: _after_boot(verdict) for item, verdict in told.items()}


def _after_boot(verdict: Verdict) -> Verdict:
    causes = [
        cause._replace(remedy=cause.remedy._replace(then="restart the host"))
        for cause in verdict.causes
    ]
    return verdict._replace(causes=tuple(causes))


def _judge_all(seen: Seen, scene: Scene, world: World) -> dict[str, Verdict]:
    own = scene.facts.manager.own
    run: Run | None = None
    given = predict_unit(scene.facts)
    told = {}
    for item, limit in seen.wanted.items():
        if item not in own:
            continue
        verdict = _judge_quickly(item, limit, seen, scene)
        if verdict is None:
            run = run or _look_closely(seen, scene, world)
            booted = scene.booted or scene.facts
            verdict = explain_run(item, limit, run, scene.facts, booted)
        verdict = verdict._replace(given=given[item] if given else Rlimit(0, 0))
        told[item] = verdict if scene.booted else verdict._replace(at_boot=None)
    return _doubt_starts(told, seen, scene)


def _doubt_starts(told: dict[str, Verdict], seen: Seen, scene: Scene) -> dict[str, Verdict]:
    """Return verdicts that foretell no pass where what the unit starts may set too little.

    A user's own service is that user's doing, and what is read of it costs a child.
    """
    if scene.uid is not None:
        return told
    lines = list_starters(scene.facts)
    since = read_start_time(seen.process) if lines else 0.0
    return {
        item: doubt_start(item, seen.wanted[item], verdict, lines, since, scene.facts)
        for item, verdict in told.items()
    }


def _judge_quickly(item: str, limit: Limit, seen: Seen, scene: Scene) -> Verdict | None:
    """Return that all is well, now and later, where nothing changed since the process started."""
    soon, boot = (predict_unit(facts) for facts in (scene.facts, scene.booted or scene.facts))
    if soon is None or boot is None:
        return None
    if not all(is_enough(limit, one[item]) for one in (seen.limits, soon, boot)):
        return None
    started = read_start_time(seen.process)
    if find_change(scene.facts.files, scene.facts.name, started)[0]:
        return None
    return Verdict((), soon[item], boot[item])


def _look_closely(seen: Seen, scene: Scene, world: World) -> Run:
    """Return all that tells since when a process has its limits, and from whom."""
    facts, process = scene.facts, seen.process
    directories = list_unit_directories(scene.uid)
    main = find_main(process, find_ancestors(process.pid))
    started = read_start_time(main)
    shown = world.show_unit(facts.name) if scene.uid is None else None
    path, changed = find_change(facts.files, facts.name, started, directories)
    stale = False
    if shown:
        stale = shown.needs_reload
        if shown.loaded_at:
            stale |= bool(find_change(facts.files, facts.name, shown.loaded_at)[0])
        if 0 < shown.loaded_at < started:
            path, changed = "", 0.0  # It was started with what the manager still has.
    if facts.pam and not changed:
        path, changed = find_session_change(world.look, started)
    return Run(
        process.pid,
        seen.limits,
        main.pid,
        seen.limits if main.pid == process.pid else read_limits(main.pid),
        Moment(started, format_time(started)),
        Moment(changed, format_time(changed)),
        path,
        scene.reload,
        scene.restart,
        shown.limits if shown else None,
        stale,
        list_starters(facts, scene.uid),
        can_set_limits(process.pid) or can_set_limits(main.pid),
    )


def judge_user_unit(seen: Seen, unit: str, uid: int, world: World) -> dict[str, Verdict]:
    """Return what is to be said of a process of a user's service, limit by limit."""
    name = f"user@{uid}.service"
    manager, known = world.find_user_manager(uid), world.find_unit(name)
    if known is None or not unit.endswith(".service"):
        return {}
    given = find_given_of_user(uid, world)
    told = {item: Verdict(given=pair) for item, pair in given.items()}
    if manager is None:
        return told
    try:
        facts = gather_user_unit(unit, uid, read_limits(manager.pid), world.look)
        call = name_caller(uid)
    except (KeyError, OSError, ValueError):
        return told
    booted = _under(facts._replace(files=outlive_boot(facts.files)), known[1])
    scene = Scene(facts, booted, (call("daemon-reload"),), (call("restart", unit),), uid)
    anew = (known[0], (("systemctl", "restart", name),))
    since = format_time(read_start_time(manager))
    judged = {
        item: _blame_manager(item, seen, scene, anew, since) or verdict
        for item, verdict in _judge_all(seen, scene, world).items()
    }
    return {item: one._replace(given=given.get(item)) for item, one in judged.items()}


def name_caller(uid: int) -> Callable[..., tuple[str, ...]]:
    """Return what makes the command by which root calls a user's service manager.

    :raises KeyError: If there is no such user.
    """
    user, bus = pwd.getpwuid(uid).pw_name, ("env", f"XDG_RUNTIME_DIR=/run/user/{uid}")
    return lambda *words: as_user(user, (*bus, "systemctl", "--user", *words))


def judge_user_default(seen: Seen, uid: int, world: World) -> dict[str, Verdict]:
    """Return what is to be said of a new service of a user, limit by limit.

    :raises KeyError, OSError, ValueError: If that cannot be told.
    """
    name = f"user@{uid}.service"
    manager, known = world.find_user_manager(uid), world.find_unit(name)
    if manager is None or known is None:
        return {}
    own = read_limits(manager.pid)
    facts = gather_user_default(uid, own, world.look)
    reload: Commands = (name_caller(uid)("daemon-reload"),)
    booted = _under(facts._replace(files=outlive_boot(facts.files)), known[1])
    scene = Scene(facts, booted, reload, (), uid)
    anew = (known[0], (("systemctl", "restart", name),))
    since = format_time(read_start_time(manager))
    bound = {
        item: _blame_manager(item, seen, scene, anew, since)
        for item, limit in seen.wanted.items()
        if max(limit.soft or 0, limit.hard or 0) > own[item].hard
    }
    return {
        item: bound.get(item) or explain_new(item, limit, seen.limits[item], facts, booted, reload)
        for item, limit in seen.wanted.items()
    }


def find_given_of_user(uid: int, world: World) -> dict[str, Rlimit]:
    """Return what root's files alone give a new service of a user; nothing where that is open."""
    known = world.find_unit(f"user@{uid}.service")
    try:
        return predict_given(uid, known[0], world.look) if known else {}
    except (OSError, ValueError):
        return {}


def _under(facts: UnitFacts, manager: UnitFacts | None) -> UnitFacts | None:
    """Return a user's service as its manager will start it once that is started anew."""
    given = predict_unit(manager) if manager else None
    if given is None:
        return None
    defaults = find_user_defaults(given)
    return facts._replace(manager=facts.manager._replace(defaults=defaults, own=given))


def _blame_manager(
    item: str, seen: Seen, scene: Scene, anew: tuple[UnitFacts, Commands], since: str
) -> Verdict | None:
    """Say why a user's service has too little where its manager cannot give it more."""
    limit, has = seen.wanted[item], seen.limits[item]
    (manager, restart), renewed = anew, _under(scene.facts, anew[0])
    now, later = (predict_unit(one) if one else None for one in (scene.facts, renewed))
    if is_enough(limit, has) or now is None or is_enough(limit, now[item]):
        return None
    boot = predict_unit(scene.booted) if scene.booted else None
    at_boot = boot[item] if boot else None
    if later and is_enough(limit, later[item]):
        pair = (format_pair(item, has), format_pair(item, later[item]))
        cause = blame_user_manager(manager.name, pair, since, restart)
        return Verdict((cause,), now[item], at_boot)
    needed = Limit(hard=max(limit.soft or 0, limit.hard or 0))
    above = find_start_causes(item, needed, manager)
    if not above and is_enough(needed, scene.facts.manager.own[item]):
        return None  # The service alone asks for too little.
    nr_open = scene.facts.manager.nr_open
    free = dict.fromkeys(scene.facts.manager.own, Rlimit(UNLIMITED, UNLIMITED))
    free["nofile"] = Rlimit(nr_open, nr_open)
    freed = scene.facts.manager._replace(own=free, may_raise=True)
    causes = find_unit_causes(item, limit, scene.facts._replace(manager=freed))
    return Verdict(finish([*causes, *above], (*_RELOAD, *restart), START_AGAIN), now[item], at_boot)
