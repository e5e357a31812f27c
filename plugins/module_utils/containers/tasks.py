# SPDX-License-Identifier: BSD-2-Clause
"""Tell what a container's engine bounds its tasks with from the bounds of the cgroups above it.

Sources: cgroups(7); systemd.resource-control(5), TasksMax=. Where an engine states nothing, the
scope of a container has systemd's default, and a folder of drop-ins for all scopes of its engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.cause import Link
from ..core.values import UNLIMITED, NamedTuple, format_quantity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..systemd.tasks import Level

_ID = "[0-9a-f]{64}"
_UNIT = r"[A-Za-z0-9:_.\\@-]{1,240}\.(slice|service|scope)"
_MANAGER = r"user@([0-9]+)\.service"


class Bounds(NamedTuple):
    """The lowest bound of a container's own cgroups, if it has some, its unit, and those above."""

    own: Level | None
    scope: Level | None
    above: tuple[Level, ...]

    def list_units(self, stated: bool) -> list[Level]:
        """Return the units that bound it, the lowest first.

        :param stated: Whether the engine bounds the container, so that its scope says the same.
        """
        scopes = [self.scope] if self.scope and not stated else []
        return _find_units([*scopes, *self.above])

    def link(self, why: str = "it has no cgroup of its own that bounds tasks") -> Link:
        """Return the last link of a chain.

        :param why: What is said where it has no bound of its own.
        """
        if self.own is None:
            return Link("container", "unknown", why)
        return Link("container", format_quantity(self.own.most), self.own.path)


class Given(NamedTuple):
    """What an engine will bound a container's tasks with, as far as that is known.

    ``stated`` is ``None`` where it states nothing, and systemd's own default counts.
    """

    stated: int | None = None
    known: bool = True

    @property
    def is_its_own(self) -> bool:
        """Tell whether the bound of its scope is the engine's, or may be."""
        return self.stated is not None or not self.known

    @property
    def most(self) -> int | None:
        """Return how many tasks it may have; ``None`` where that is not known."""
        if not self.known:
            return None
        return UNLIMITED if self.stated is None else self.stated


def split_levels(levels: Sequence[Level], identity: str = "") -> Bounds:
    """Return the bounds of a container apart from those above it.

    :param levels: From the cgroup of its first process upward.
    :param identity: Its id; any that looks like one where it is not known.
    """
    form = re.compile(rf"(.+-)?({re.escape(identity) if identity else _ID})(\.scope)?")
    found = [index for index, level in enumerate(levels) if form.fullmatch(level.unit)]
    if not found:
        return Bounds(None, None, tuple(levels))
    top = found[-1]  # What is below is the container's own.
    match = form.fullmatch(levels[top].unit)
    scope = None
    if match and match[1] and match[3]:
        scope = levels[top]._replace(unit=f"{match[1]}.scope")
    own = min(levels[: top + 1], key=lambda level: level.most)
    return Bounds(own, scope, tuple(levels[top + 1 :]))


def _find_units(levels: Sequence[Level]) -> list[Level]:
    """Return the cgroups that are units for sure: slices, and the service or scope below them.

    Whoever that belongs to may make others below, of any name. A user's manager has units of its
    own in its place.
    """
    found, in_manager = [], False
    for level in reversed(levels):
        is_manager = bool(re.fullmatch(_MANAGER, level.unit))
        if not re.fullmatch(_UNIT, level.unit) or (is_manager and in_manager):
            break
        found.append(level)
        in_manager = in_manager or is_manager
        if not (is_manager or level.unit.endswith(".slice")):
            break
    return found[::-1]


def find_uid(units: Sequence[Level]) -> int | None:
    """Return whose service manager holds the first of these units; nothing for the system's."""
    found = (re.fullmatch(_MANAGER, level.unit) for level in units)
    return next((int(match[1]) for match in found if match), None)
