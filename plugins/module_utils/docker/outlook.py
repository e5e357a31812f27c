# SPDX-License-Identifier: BSD-2-Clause
"""Judge what containers have against what they will have, and name what must change."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.cause import Cause, Outlook, Remedy
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Requirement
from ..core.values import NamedTuple, Rlimit
from .model import World, find_obstacles, foretell, judge_all, predict
from .site import Pending, Site


class Scene(NamedTuple):
    """What Docker runs with on a host, and what it will run with.

    ``restart`` is as dockerd's next start will find things, ``boot`` as the next boot will.
    ``seen`` is what a new container was measured to get, by item, empty where none was;
    ``refused`` tells that none starts.
    """

    restart: World
    boot: World
    site: Site
    pending: Pending
    seen: Mapping[str, Rlimit] = {}
    refused: bool = False

    @property
    def differs(self) -> bool:
        """Tell whether dockerd may run with something else than its files say."""
        now, then = (
            [flag[:2] for flag in flags] for flags in (self.pending.flags, self.restart[2])
        )
        return bool(self.pending.changed) or now != then


def explain_new(finding: Finding, scene: Scene) -> Finding:
    """Return a finding of a new container with its causes and what comes next."""
    wanted = finding.requirement
    outlook = Outlook("", *(foretell(wanted, world) for world in (scene.restart, scene.boot)))
    if finding.status == UNKNOWN:
        return finding._replace(outlook=outlook)
    late, known = _find_delay(wanted, scene)
    if not known:
        return finding._replace(outlook=Outlook("", UNKNOWN, UNKNOWN))
    causes: list[Cause] = []
    if finding.status == FAIL:
        causes = _blame(wanted, late, scene)
    elif FAIL in outlook:
        world = scene.restart if outlook.next_restart == FAIL else scene.boot
        causes = blame_world(wanted, world, scene)
    return finding._replace(causes=tuple(causes), outlook=outlook)


def explain_start(finding: Finding, scene: Scene) -> Finding:
    """Return the finding that no container starts with its causes and what comes next."""
    wanted = finding.requirement
    obstacles = [find_obstacles(world) for world in (scene.restart, scene.boot)]
    late = None if obstacles[0] else _blame_delay(wanted, scene)
    causes = _blame(wanted, late, scene)
    unsure = PASS if late else UNKNOWN
    outlook = Outlook("", *(FAIL if found else unsure for found in obstacles))
    return finding._replace(causes=tuple(causes), outlook=outlook)


def _find_delay(wanted: Requirement, scene: Scene) -> tuple[Cause | None, bool]:
    """Return what a restart of dockerd would change, and whether what was measured is explained."""
    if find_obstacles(scene.restart):
        return None, scene.differs
    if wanted.item not in scene.seen:
        return None, not scene.differs
    if scene.seen[wanted.item] in predict(scene.restart, wanted.item):
        return None, True
    late = _blame_delay(wanted, scene)
    return late, late is not None


def _blame_delay(wanted: Requirement, scene: Scene) -> Cause | None:
    from .causes import blame_pending  # Long, and nothing is wrong on most hosts.

    return blame_pending(wanted, scene.restart, scene.pending, scene.site.tools)


def blame_world(wanted: Requirement, world: World, scene: Scene) -> list[Cause]:
    """Blame what a new container will get."""
    from .causes import find_docker_causes  # As above.

    return find_docker_causes(wanted, world, scene.site)


def _blame(wanted: Requirement, late: Cause | None, scene: Scene) -> list[Cause]:
    causes = blame_world(wanted, scene.restart, scene)
    if late and any(cause.remedy.commands for cause in causes):  # One restart is enough.
        late = late._replace(remedy=Remedy("it counts with the restart below"))
    return [late, *causes] if late else causes


def find_defaults(item: str, scene: Scene) -> tuple[Rlimit, ...]:
    """Return what a new container gets from the dockerd that runs, every limit that may be."""
    if item in scene.seen:
        return (scene.seen[item],)
    unknown = scene.differs or bool(find_obstacles(scene.restart))
    return () if unknown else predict(scene.restart, item)


def blame_defaults(wanted: Requirement, scene: Scene) -> list[Cause]:
    """Blame what a new container gets; nothing where that is enough or is not known."""
    if scene.refused:
        late = None if find_obstacles(scene.restart) else _blame_delay(wanted, scene)
        return _blame(wanted, late, scene)
    if judge_all(wanted, find_defaults(wanted.item, scene)) != FAIL:
        return []
    late, known = _find_delay(wanted, scene)
    return _blame(wanted, late, scene) if known else []
