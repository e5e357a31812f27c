# SPDX-License-Identifier: BSD-2-Clause
"""Sessions: what PAM gives to logins."""

from __future__ import annotations

from .place import Place, require_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .check_options import Options as CheckOptions
    from .place import Codes, Foretold
    from .policy.adopted import Adopted
    from .policy.cause import Link
    from .policy.finding import Finding
    from .policy.resolved import Query
    from .policy.sessions_policy import SessionRule
    from .probe.evidence import Evidence
    from .probe.tree import Tree


class Sessions(Place["tuple[SessionRule, ...]"]):
    """``sessions`` of a policy."""

    name = "sessions"
    names = ("session:USER@SERVICE",)
    is_provisioned = True

    def check(
        self, asked: tuple[SessionRule, ...], options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check_sessions import check_sessions

        how = (options.users, options.services, options.probe)
        return check_sessions(asked, *how, evidence)

    def foresee(
        self, asked: tuple[SessionRule, ...], options: CheckOptions, tree: Tree
    ) -> Foretold | None:
        from .sessions_image import foresee_sessions

        return foresee_sessions(asked, options, tree)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        user, _at, service = name.rpartition("@")
        if kind != "session" or not user or not service:
            return None
        from .explain_sessions import trace_session

        return list(trace_session(user, service, require_limit(item), evidence))

    def resolve(self, root: str, query: Query) -> Iterator[dict[str, object]]:
        from .sessions_resolve import resolve_sessions

        return resolve_sessions(root, query)

    def adopt(self, root: str) -> Adopted | None:
        from .sessions_adopt import adopt_tree_sessions

        return adopt_tree_sessions(root)

    def codes(self) -> Codes:
        from .policy.connection_causes import CODES as CONNECTION
        from .policy.pam_reach import CODES as REACH
        from .policy.session_causes import CODES
        from .policy.shell_causes import CODES as SHELL

        place = self.names[0]
        return ((place, CODES), (place, REACH), (place, SHELL), ("connection", CONNECTION))
