# SPDX-License-Identifier: BSD-2-Clause
"""What a place where limits live answers to each verb."""

from __future__ import annotations

from typing import Generic, TypeVar

from .rlimit import RLIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..provision_options import Options as ProvisionOptions
    from ..schema import Policy
    from ..sessions.evidence import Evidence
    from ..sessions.tree_read import Tree
    from .adopted import Adopted
    from .cause import Link
    from .check_options import Options as CheckOptions
    from .finding import Finding, Requirement
    from .forecast import Forecast
    from .resolved import Query
    from .section import Section

    Foretold = Iterable[tuple[Requirement, Forecast]]
    Codes = Sequence[tuple[str, Mapping[str, str]]]

Asked = TypeVar("Asked")


class Place(Generic[Asked]):
    """One place: a section of the policy, and who answers there.

    A place that has nothing to say to a verb leaves that method as it is here. Each method loads
    what it needs when it is called, so that a verb loads nothing of what nobody asked for.
    """

    name = ""
    """Of the section, of the policy's field, and in all that is printed."""

    names: tuple[str, ...] = ()
    """What ``explain`` accepts; capitals stand for what the host calls its own."""

    is_provisioned = False
    """Whether ``provision`` writes for it."""

    def find_asked(self, policy: Policy) -> Any:
        """Return what a policy asks of this place."""
        return getattr(policy, self.name)

    def is_stated(self, policy: Policy) -> bool:
        return self.find_asked(policy) not in (None, (), {})

    def check(self, asked: Asked, options: CheckOptions, evidence: Evidence) -> Iterable[Finding]:
        """Yield what the host gives now; asked only where the policy states something."""
        raise NotImplementedError(self.name)

    def foresee(self, _asked: Asked, _options: CheckOptions, _tree: Tree) -> Foretold | None:
        """Return what the files of an image foretell; ``None`` where they tell nothing.

        Asked only where the policy states something.
        """
        return None

    def list_folders(self) -> Iterable[str]:
        """Return the folders in which files may be replaced."""
        return ()

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        """Return the plan, and how it comes into effect; asked where the place is provisioned.

        :param nr_open: The lowest fs.nr_open that will be in force.
        """
        raise NotImplementedError(self.name)

    def explain(
        self, _kind: str, _name: str, _item: str, _evidence: Evidence
    ) -> Sequence[Link] | None:
        """Return the chain of ``KIND:NAME`` and a limit; ``None`` where that is another place."""
        return None

    def resolve(self, _root: str, _query: Query) -> Iterator[dict[str, object]]:
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

    :raises ValueError: If it is none.
    """
    if item not in RLIMITS:
        raise ValueError(f"{item!r} is no limit; accepted are {', '.join(RLIMITS)}")
    return item
