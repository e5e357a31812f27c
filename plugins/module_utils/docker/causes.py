# SPDX-License-Identifier: BSD-2-Clause
"""Say why a new container gets less than a policy asks, by changing one thing after another.

What is at fault first is put right in thought and the container is foretold again, until the
requirement is met: each thing that had to change is a cause.
"""

from __future__ import annotations

from ..containers.policy import SHM
from ..core.cause import Cause, Remedy, search
from ..core.finding import FAIL, PASS, Requirement
from ..core.json_text import find_members, line_of
from ..core.values import Declaration, Rlimit
from .daemon_json import Entry, StatedDefault, read_entries, read_members, walk_entries
from .dockerd_flags import CONFIG_PATH
from .flags import declare_flag, read_flag_defaults
from .model import (
    World,
    find_obstacles,
    find_stated,
    foretell,
    inherit_at_start,
    judge_all,
    predict,
)
from .obstacles import blame_obstacle
from .remedies import (
    choose_limit,
    cite_statement,
    count_met,
    drop_flags,
    format_pair,
    key_of,
    state,
)
from .site import Pending, Site, Tools

CODES = {
    "docker-config-not-read": "daemon.json changed after dockerd started, which reads it only once",
    "docker-unit-not-read": "dockerd runs with other flags than its unit gives it now",
    "docker-config-elsewhere": "a flag lets dockerd read another file than daemon.json",
    "docker-stated-too-low": "the line of daemon.json or the flag that counts states too little",
    "docker-later-wins": "of two statements of one limit, the later one counts",
    "docker-stated-twice": "two entries limit the same, or a key stands there twice",
    "docker-name-differs": "an entry's Name, which decides, is not the key it stands under",
    "docker-not-stated": "nothing states the limit, and what containerd has is too little",
    "docker-containerd-too-low": "only containerd's unit states it, and states too little or much",
    "docker-containerd-not-restarted": "containerd runs with less than its unit states now",
    "docker-unit-limit-ignored": "a limit of docker.service is dockerd's own, and no container's",
    "docker-shm-not-stated": "nothing states default-shm-size, and /dev/shm has 64 MiB",
}


def find_docker_causes(wanted: Requirement, world: World, site: Site) -> list[Cause]:
    """Return everything that keeps a new container from a requirement, what comes first first.

    There is none where it is foretold to be met, and where what is wrong is not understood.
    """
    return search(world, lambda state: _find_next(wanted, state, site))[0]


def _find_next(wanted: Requirement, world: World, site: Site) -> tuple[Cause, World | None] | None:
    """Return what is at fault first, and the world with that put right where it is known."""
    try:
        return _blame_first(wanted, world, site)
    except ValueError:  # No edit of a key that is stated twice is sure.
        at = _find_second(key_of(wanted.item), world)
        return (_blame_second(at), None) if at else None


def _find_second(key: str, world: World) -> Declaration | None:
    """Return where daemon.json states a key for the last time, if it does so more than once."""
    text = world.text or ""
    try:
        members = [one for one in find_members(text, world.path) if one.key == key]
    except ValueError:
        return None  # It is no object at all.
    if len(members) < 2:
        return None
    last = members[-1]
    line = line_of(text, last.start)
    return Declaration(world.path, line, text[last.start : last.end], "")


def _blame_second(at: Declaration) -> Cause:
    text = f"{at.place} states a key that stands there before as well, and the last one counts"
    return Cause("docker-stated-twice", text, Remedy("leave one of the two, with enough"), at)


def _blame_first(
    wanted: Requirement, world: World, site: Site
) -> tuple[Cause, World | None] | None:
    obstacles = find_obstacles(world)
    if obstacles:
        return blame_obstacle(obstacles, world, site)
    if wanted.bound not in ("soft", "hard") and wanted.item != SHM:
        return None  # That containers start at all.
    if foretell(wanted, world) == PASS:
        return None
    elsewhere = _blame_path(world, site)
    if elsewhere:
        return elsewhere
    stated = find_stated(world, wanted.item)
    return (
        _blame_stated(wanted, stated, world, site)
        if stated
        else _blame_silence(wanted, world, site)
    )


def _blame_path(world: World, site: Site) -> tuple[Cause, World] | None:
    """Blame that dockerd reads another file, where daemon.json in its usual place states more."""
    named = [flag for flag in world.flags if flag.name == "config-file"]
    if site.usual is None or not named:
        return None
    remedy, changed = drop_flags(named, world, site.tools)
    usual = changed._replace(path=CONFIG_PATH, text=site.usual)
    if count_met(usual, site.policy) <= count_met(world, site.policy):
        return None
    at = declare_flag(named[-1])
    text = (
        f"{cite_statement(at)} lets dockerd read that, and not {CONFIG_PATH}, which states enough"
    )
    return Cause("docker-config-elsewhere", text, remedy, at), usual


def _blame_stated(
    wanted: Requirement, stated: list[StatedDefault], world: World, site: Site
) -> tuple[Cause, World] | None:
    """Blame the statement that counts."""
    at = stated[-1].declaration
    rivals = tuple(one for one in _find_earlier(wanted, world) if one != at)
    if len({default.limit for default in stated}) > 1:
        code, text = "docker-stated-twice", "is one of two that limit the same, and which counts"
        text = f"{cite_statement(at)} {text} is not defined"
        rivals = tuple(default.declaration for default in stated[:-1])
    elif rivals:
        code = "docker-later-wins"
        text = f"{cite_statement(at)} counts, since it comes after {cite_statement(rivals[-1])}"
    else:
        value = wanted.pick(stated[-1].limit)
        low = wanted.minimum is not None and value < wanted.minimum
        code = "docker-stated-too-low"
        text = f"{cite_statement(at)} states too {'little' if low else 'much'}"
    return _state(code, text, wanted, stated[-1].limit, world, site, at, rivals)


def _find_earlier(wanted: Requirement, world: World) -> list[Declaration]:
    """Return the statements of one limit that state enough and are replaced by a later one."""
    found = [one for flag in world.flags for one in read_flag_defaults([flag])]
    earlier = [
        one.declaration
        for one in found
        if one.name == wanted.item and judge_all(wanted, [one.limit]) == PASS
    ]
    if world.text is None or wanted.item == SHM:
        return earlier
    members = read_members(world.text, world.path, world.version)
    entries = walk_entries(world.text, world.path, members)
    return earlier + [
        _declare(entry, world)
        for entry in entries
        if entry.item == wanted.item and judge_all(wanted, [entry.limit]) == PASS
    ]


def _declare(entry: Entry, world: World) -> Declaration:
    return Declaration(world.path, entry.line, entry.text, "")


def _state(
    code: str,
    text: str,
    wanted: Requirement,
    now: Rlimit,
    world: World,
    site: Site,
    at: Declaration | None,
    shadows: tuple[Declaration, ...] = (),
) -> tuple[Cause, World] | None:
    """Blame what is stated, or that nothing is; the remedy states what the policy demands."""
    limit = choose_limit(wanted.item, site.policy, now)
    if limit is None:
        return None
    remedy, changed = state(wanted.item, limit, world, site.tools)
    return Cause(code, text, remedy, at, shadows), changed


def _blame_silence(wanted: Requirement, world: World, site: Site) -> tuple[Cause, World] | None:
    """Blame what keeps a limit unstated, or what containers inherit then."""
    item, base = wanted.item, predict(world, wanted.item)
    misnamed = _find_misnamed(item, world)
    if misnamed:
        at = _declare(misnamed, world)
        text = f"{cite_statement(at)} limits {misnamed.item}, since its Name decides"
        now = base[0] if base else misnamed.limit
        return _state("docker-name-differs", text, wanted, now, world, site, at)
    if item == SHM:
        text = f"no file states default-shm-size: /dev/shm has {format_pair(item, base[0])}"
        return _state("docker-shm-not-stated", text, wanted, base[0], world, site, None)
    if not base or judge_all(wanted, base) == PASS:
        return None
    late = _blame_containerd(wanted, world, site)
    if late:
        return late
    has = f"a container gets containerd's, {format_pair(item, base[0])}"
    code, line, text = _find_line(wanted, site)
    return _state(code, f"{text}: {has}", wanted, base[0], world, site, line)


def _find_misnamed(item: str, world: World) -> Entry | None:
    """Return the entry that was meant for an item and limits another."""
    if world.text is None:
        return None
    members = read_members(world.text, world.path, world.version)
    entries = read_entries(world.text, world.path, members)
    return next((one for one in entries if one.key == item != one.item), None)


def _blame_containerd(wanted: Requirement, world: World, site: Site) -> tuple[Cause, World] | None:
    """Blame that containerd was not restarted, where that alone would do."""
    parent = site.parent
    if parent is None or not parent.changed or wanted.item not in parent.stated:
        return None
    if judge_all(wanted, world.base.get(wanted.item, ())) != FAIL:
        return None
    later = inherit_at_start(parent, wanted.item, world.nr_open)
    if judge_all(wanted, later) != PASS:
        return None
    at = parent.stated[wanted.item].at
    text = (
        f"{cite_statement(at)} counts once {parent.unit} restarts: it has run since {parent.since}"
        f" with {format_pair(wanted.item, parent.limits[wanted.item])}"
    )
    commands = (("systemctl", "daemon-reload"), ("systemctl", "restart", parent.unit))
    cause = Cause("docker-containerd-not-restarted", text, Remedy("restart it", commands), at)
    return cause, world._replace(base={**world.base, wanted.item: later})


def _find_line(wanted: Requirement, site: Site) -> tuple[str, Declaration | None, str]:
    """Return the code, the line at fault and what to say where daemon.json states nothing."""
    item, parent = wanted.item, site.parent
    own = site.own.get(item)
    if own and judge_all(wanted, [own.limit]) == PASS:
        text = f"{cite_statement(own.at)} is dockerd's own limit and no container's"
        return "docker-unit-limit-ignored", own.at, text
    stated = parent.stated.get(item) if parent else None
    if stated and judge_all(wanted, [stated.limit]) != PASS:
        much = wanted.maximum is not None and wanted.pick(stated.limit) > wanted.maximum
        word = "much" if much else "little"
        text = f"{cite_statement(stated.at)} states too {word}, and daemon.json nothing"
        return "docker-containerd-too-low", stated.at, text
    return "docker-not-stated", None, f"nothing states {item}"


def blame_pending(
    wanted: Requirement, world: World, pending: Pending, tools: Tools
) -> Cause | None:
    """Blame that dockerd has not started since its files changed; ``None`` where it has.

    :param world: As the files are.
    """
    item = wanted.item
    now, then = (
        next((one for one in read_flag_defaults(flags) if one.name == item), None)
        for flags in (pending.flags, world.flags)
    )
    if (now.limit if now else None) != (then.limit if then else None):
        has = f"with {now.declaration.text}" if now else "without that flag"
        given = cite_statement(then.declaration) if then else "its unit gives it no such flag"
        text = f"{given}, but dockerd has run since {pending.since} {has}"
        remedy = tools.restart("", [("systemctl", "daemon-reload")])
        source = then or now
        return Cause("docker-unit-not-read", text, remedy, source.declaration if source else None)
    if not pending.changed:
        return None
    stated = find_stated(world, item)
    at = stated[-1].declaration if stated else Declaration(world.path, 0, "", "")
    text = (
        f"{world.path} changed at {pending.changed}, and dockerd, running since {pending.since},"
        " reads it only at its start"
    )
    return Cause("docker-config-not-read", text, tools.restart(""), at)
