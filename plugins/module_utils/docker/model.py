# SPDX-License-Identifier: BSD-2-Clause
"""Foretell what a new container gets, from daemon.json, the daemon's flags and containerd.

A limit that neither file nor flag states is inherited from containerd's process. The Go runtime
raises the soft nofile of a program at its start, and until Go 1.21 its children kept it: then two
values are possible, and both are carried along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..containers.policy import SHM
from ..core.finding import FAIL, UNKNOWN, Observation, Requirement, judge
from ..core.values import UNLIMITED, Declaration, NamedTuple, Rlimit
from ..shared_memory.size import DEFAULT_SHM_SIZE
from .daemon_json import DockerDefaults, Problem, StatedDefault, read_defaults
from .dockerd_flags import Flag
from .flags import read_flag_defaults
from .problems import find_daemon_json_problems

_SYSTEMD_SOFT = 1024  # Of nofile, where no unit states it (systemd-system.conf(5)).
_NOTHING = DockerDefaults({})


class World(NamedTuple):
    """All that decides what a new container gets, as it is or as it is thought of.

    ``text`` is daemon.json's, ``None`` where it is absent. ``base`` is what a container inherits:
    every limit that is possible; one that is missing or empty is not known.
    """

    text: str | None
    path: str
    flags: tuple[Flag, ...] = ()
    base: Mapping[str, tuple[Rlimit, ...]] = {}
    nr_open: int = UNLIMITED
    version: str = ""


class UnitLimit(NamedTuple):
    """A limit that a unit's files state, and the line that wins it."""

    limit: Rlimit
    at: Declaration


class Parent(NamedTuple):
    """The process whose limits containers inherit: containerd.

    ``unit`` is its systemd unit, empty where it has none, ``stated`` what the unit's files state
    as they are, and ``changed`` tells whether they changed since the process started.
    """

    pid: int
    unit: str
    limits: Mapping[str, Rlimit]
    since: str = ""
    stated: Mapping[str, UnitLimit] = {}
    changed: bool = False


def find_obstacles(world: World) -> list[Problem]:
    """Return what stops dockerd at its next start, or every container at its own."""
    text = "{}" if world.text is None else world.text
    return list(_read_obstacles(text, world.path, world.flags, world.nr_open, world.version))


@lru_cache(maxsize=16)  # Every finding asks the same.
def _read_obstacles(
    text: str, path: str, flags: tuple[Flag, ...], nr_open: int, version: str
) -> tuple[Problem, ...]:
    problems = find_daemon_json_problems(text, path, _NOTHING, flags, nr_open, version)
    return tuple(problem for problem in problems if problem.stops)


def find_stated(world: World, item: str) -> list[StatedDefault]:
    """Return what daemon.json and the flags state of one item; one of them counts.

    There must be no obstacles.
    """
    stated = _read_stated(world.text, world.path, world.flags, world.version)
    return [default for default in stated if default.name == item]


@lru_cache(maxsize=16)
def _read_stated(
    text: str | None, path: str, flags: tuple[Flag, ...], version: str
) -> tuple[StatedDefault, ...]:
    stated = read_flag_defaults(flags)
    if text is not None:
        stated += read_defaults(text, path, version)
    return tuple(stated)


def predict(world: World, item: str) -> tuple[Rlimit, ...]:
    """Return every limit that a new container may get; none where that is not known.

    There must be no obstacles.
    """
    stated = tuple(dict.fromkeys(default.limit for default in find_stated(world, item)))
    if item == SHM:
        return stated or (Rlimit(DEFAULT_SHM_SIZE, DEFAULT_SHM_SIZE),)
    return stated or world.base.get(item, ())


def foretell(wanted: Requirement, world: World) -> str:
    """Return whether a new container will meet a requirement: pass, fail or unknown."""
    return FAIL if find_obstacles(world) else judge_all(wanted, predict(world, wanted.item))


def judge_all(wanted: Requirement, limits: Iterable[Rlimit]) -> str:
    """Judge every limit that is possible: unknown where they differ, or there is none."""
    statuses = {judge(wanted, Observation(wanted.pick(limit), "")).status for limit in limits}
    return statuses.pop() if len(statuses) == 1 else UNKNOWN


def inherit(parent: Parent, item: str) -> tuple[Rlimit, ...]:
    """Return what a container may inherit from containerd's process as it runs."""
    if item not in parent.limits:
        return ()
    soft, hard = parent.limits[item]
    possible = [Rlimit(soft, hard)]
    if item == "nofile" and soft == hard:
        stated = parent.stated.get(item)
        if stated is None or parent.changed:
            possible.append(Rlimit(min(_SYSTEMD_SOFT, hard), hard))
        if stated:
            possible.append(Rlimit(min(stated.limit.soft, hard), hard))
    return tuple(dict.fromkeys(possible))


def inherit_at_start(parent: Parent, item: str, nr_open: int) -> tuple[Rlimit, ...]:
    """Return what a container may inherit once containerd has started anew.

    :param nr_open: ``fs.nr_open`` of then, above which systemd sets no nofile.
    """
    stated = parent.stated.get(item)
    if stated is None:
        return () if parent.changed else inherit(parent, item)
    if item != "nofile":
        return (stated.limit,)
    soft, hard = (min(bound, nr_open) for bound in stated.limit)
    return tuple(dict.fromkeys((Rlimit(soft, hard), Rlimit(hard, hard))))
