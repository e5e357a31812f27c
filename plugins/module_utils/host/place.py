# SPDX-License-Identifier: BSD-2-Clause
"""What a place where limits live answers to each verb."""

from __future__ import annotations

import os
from typing import TypeVar

from ..core.values import RLIMITS, Generic
from .files import read_text, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..core.adopted import Adopted
    from ..core.cause import Link
    from ..core.finding import Finding, Requirement
    from ..core.forecast import Forecast
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions, Switch
    from ..core.resolved import Query
    from .image import Tree
    from .look import Look, Promise

    Foretold = Iterable[tuple[Requirement, Forecast]]
    Codes = Sequence[tuple[str, Mapping[str, str]]]

Asked = TypeVar("Asked")
_MARK = "# BEGIN mlhost.limits"


class Place(Generic[Asked]):
    """One place: a section of the policy, and who answers there.

    A place that has nothing to say to a verb leaves that method as it is here. Each method loads
    what it needs when it is called, so that a verb loads nothing of what nobody asked for.
    """

    name = ""
    """Of the section, of its folder, and in all that is printed."""

    path = ""
    """Where a policy speaks of it, such as ``containers.docker``."""

    kind, about = "mapping", ""
    """What a policy has there, for the reference; the keys are ``KEYS`` of its ``policy.py``."""

    names: tuple[str, ...] = ()
    """What ``explain`` accepts; capitals stand for what the host calls its own."""

    is_of_run = False
    """Whether it is asked of one run before that starts, and not of the host for good."""

    is_provisioned = False
    """Whether ``provision`` writes for it."""

    is_always_planned = False
    """Whether it is planned where a policy does not speak of it too: other places depend on it."""

    switches: Mapping[str, Switch] = {}
    """The options of ``provision`` that concern it alone, by name."""

    own_files: tuple[str, ...] = ()
    """What a run of ours leaves here alone, so that a later one knows of it."""

    marked_file = ""
    """A file of others in which it leaves a block."""

    def read_policy(self, _raw: object, _problems: list[str]) -> Asked | None:
        """Return what stands at ``path``, checked; every violation is added to the problems."""
        raise NotImplementedError(self.name)

    def spell(self, raw: object) -> object:
        """Return what stands at ``path`` with its names in the one spelling that profiles have."""
        return raw

    def find_doubles(self, _raw: object) -> Iterable[str]:
        """Yield what stands at ``path`` under two spellings: one value would be lost."""
        return ()

    def find_missing(self, _asked: Asked) -> Iterable[str]:
        """Yield what a run must state besides, and does not."""
        return ()

    def list_units(self, _asked: Asked) -> Mapping[str, str]:
        """Return the units that it writes drop-ins for, with the key path that asks for each."""
        return {}

    def read_switch(self, options: ProvisionOptions, name: str) -> Any:
        """Return what a run chose of one of the switches, or its default."""
        return options.switches.get(name, self.switches[name].default)

    def check(self, asked: Asked, options: CheckOptions, look: Look) -> Iterable[Finding]:
        """Yield what the host gives now; asked only where the policy states something."""
        raise NotImplementedError(self.name)

    def foresee(self, _asked: Asked, _options: CheckOptions, _tree: Tree) -> Foretold | None:
        """Return what the files of an image foretell; ``None`` where they tell nothing.

        Asked only where the policy states something.
        """
        return None

    def is_made(self, root: str) -> bool:
        """Tell whether an earlier run has made it true here, by a few looks at files."""
        if any(os.path.isfile(under(path, root)) for path in self.own_files):
            return True
        try:
            return bool(self.marked_file) and _MARK in (read_text(self.marked_file, root) or "")
        except OSError:
            return False  # Its own section says so where it is asked for.

    def list_folders(self) -> Iterable[str]:
        """Return the folders in which files may be replaced."""
        return [os.path.dirname(path) for path in (*self.own_files, self.marked_file) if path]

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        """Return the plan, and how it comes into effect; asked where the place is provisioned.

        :param nr_open: The lowest fs.nr_open that will be in force.
        """
        raise NotImplementedError(self.name)

    def leave(self) -> Section:
        """Return what other places must know of it where a run leaves it as it is."""
        from ..core.plan import Section

        return Section()

    def explain(self, _kind: str, _name: str, _item: str, _look: Look) -> Sequence[Link] | None:
        """Return the chain of ``KIND:NAME`` and a limit; ``None`` where that is another place."""
        return None

    def promise(self, _look: Look) -> Iterable[Promise]:
        """Yield each nofile that its files state, with where: fs.nr_open must not fall below it."""
        return ()

    def resolve(self, _tree: Tree, _query: Query) -> Iterator[dict[str, object]]:
        """Yield what the files of a tree state."""
        yield from ()

    def adopt(self, _root: str) -> Adopted | None:
        """Return the section that a site's own files amount to; ``None`` where it has no files."""
        return None

    def codes(self) -> Codes:
        """Return the codes of causes with their meanings, each table with what it is about."""
        return ()


def require_limit(item: str) -> str:
    """Return the name of a limit.

    :raises ValueError: If it is not one.
    """
    if item not in RLIMITS:
        raise ValueError(f"{item!r} is not a limit; accepted are {', '.join(RLIMITS)}")
    return item
