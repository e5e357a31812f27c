# SPDX-License-Identifier: BSD-2-Clause
"""Sessions: what PAM gives to logins."""

from __future__ import annotations

from ..core.policy import Switch
from ..host.place import Place, require_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.adopted import Adopted
    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions
    from ..core.resolved import Query
    from ..host.image import Tree
    from ..host.look import Look, Promise
    from ..host.place import Codes, Foretold
    from .policy import SessionRule


class Sessions(Place["tuple[SessionRule, ...]"]):
    """``sessions`` of a policy."""

    name = path = "sessions"
    kind, about = "list", "PAM logins"
    names = ("session:USER@SERVICE",)
    is_provisioned = is_always_planned = True
    switches = {
        "sessions_file": Switch(
            "path", "/etc/security/limits.d/90-mlhost.conf", "the file for the limits of logins"
        )
    }

    def read_policy(self, raw: object, problems: list[str]) -> tuple[SessionRule, ...] | None:
        from .policy import read_sessions

        return read_sessions(raw, problems)

    def check(
        self, asked: tuple[SessionRule, ...], options: CheckOptions, look: Look
    ) -> Iterable[Finding]:
        from .check import check_sessions

        how = (options.users, options.services, options.probe)
        return check_sessions(asked, *how, look)

    def foresee(
        self, asked: tuple[SessionRule, ...], options: CheckOptions, tree: Tree
    ) -> Foretold | None:
        from .image import foresee_sessions

        return foresee_sessions(asked, options, tree)

    def list_folders(self) -> Iterable[str]:
        from .pam_limits import LIMITS_CONF, LIMITS_D

        return (LIMITS_CONF.rpartition("/")[0], LIMITS_D)

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .plan import SessionsOptions
        from .provision import prepare_sessions

        target = self.read_switch(options, "sessions_file")
        chosen = SessionsOptions(target, options.override, options.absent)
        return prepare_sessions(policy.get(self.name) or (), chosen, nr_open)

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        user, _at, service = name.rpartition("@")
        if kind != "session" or not user or not service:
            return None
        from .diagnose import trace_session

        return list(trace_session(user, service, require_limit(item), look))

    def promise(self, look: Look) -> Iterable[Promise]:
        from .host_read import SessionsRead
        from .limits_conf import list_nofiles

        return list_nofiles(look.at(SessionsRead).limits_lines)

    def resolve(self, tree: Tree, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_sessions

        return resolve_sessions(tree, query)

    def adopt(self, root: str) -> Adopted | None:
        from .adopt import adopt_tree_sessions

        return adopt_tree_sessions(root)

    def codes(self) -> Codes:
        from .causes import CODES
        from .connection_causes import CODES as CONNECTION
        from .doubts import CODES as DOUBTS
        from .reach import CODES as REACH
        from .selinux_causes import CODES as SELINUX
        from .shell_causes import CODES as SHELL

        place = self.names[0]
        own = (CODES, REACH, SELINUX, SHELL, DOUBTS)
        return (*((place, codes) for codes in own), ("connection", CONNECTION))
