# SPDX-License-Identifier: GPL-3.0-or-later
"""Toys."""

from __future__ import annotations

from ..core.policy import Switch
from ..host.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions
    from ..core.resolved import Query
    from ..host.image import Tree
    from ..host.look import Look
    from ..host.place import Codes, Foretold


class Toys(Place[int]):
    """``toys`` of a policy."""

    name = path = "toys"
    about = "toys"
    names = ("toys",)
    is_provisioned = True
    switches = {"toys_restart": Switch("bool", False, "restart the toys where that is needed")}

    def read_policy(self, raw: object, problems: list[str]) -> int | None:
        from .policy import read_toys

        return read_toys(raw, problems)

    def check(self, asked: int, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_toys

        return (check_toys(asked),)

    def foresee(self, asked: int, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .check import foresee_toys

        return foresee_toys(asked, tree.root)

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .provision import prepare_toys

        return prepare_toys(policy.get(self.name), options.absent)

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        from .check import trace_toys

        return trace_toys() if kind == self.name else None

    def resolve(self, root: str, query: Query) -> Iterator[dict[str, object]]:
        from .check import resolve_toys

        return resolve_toys(root)

    def codes(self) -> Codes:
        from .toy_conf import CODES

        return ((self.name, CODES),)
