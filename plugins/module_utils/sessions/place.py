# SPDX-License-Identifier: BSD-2-Clause
"""Sessions: what PAM gives to logins."""

from __future__ import annotations

from ..core.place import Place, require_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.adopted import Adopted
    from ..core.cause import Link
    from ..core.check_options import Options as CheckOptions
    from ..core.finding import Finding
    from ..core.place import Codes, Foretold
    from ..core.resolved import Query
    from .evidence import Evidence
    from .policy import SessionRule
    from .tree_read import Tree


class Sessions(Place["tuple[SessionRule, ...]"]):
    """``sessions`` of a policy."""

    name = "sessions"
    names = ("session:USER@SERVICE",)
    is_provisioned = True

    def check(
        self, asked: tuple[SessionRule, ...], options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check import check_sessions

        how = (options.users, options.services, options.probe)
        return check_sessions(asked, *how, evidence)

    def foresee(
        self, asked: tuple[SessionRule, ...], options: CheckOptions, tree: Tree
    ) -> Foretold | None:
        from .image import foresee_sessions

        return foresee_sessions(asked, options, tree)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        user, _at, service = name.rpartition("@")
        if kind != "session" or not user or not service:
            return None
        from .diagnose import trace_session

        return list(trace_session(user, service, require_limit(item), evidence))

    def resolve(self, root: str, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_sessions

        return resolve_sessions(root, query)

    def adopt(self, root: str) -> Adopted | None:
        from .adopt import adopt_tree_sessions

        return adopt_tree_sessions(root)

    def codes(self) -> Codes:
        from .causes import CODES
        from .connection_causes import CODES as CONNECTION
        from .reach import CODES as REACH
        from .shell_causes import CODES as SHELL

        place = self.names[0]
        return ((place, CODES), (place, REACH), (place, SHELL), ("connection", CONNECTION))
