# SPDX-License-Identifier: BSD-2-Clause
"""Services: what systemd gives to units and to users' managers, and logind."""

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
    from ..core.section import Section
    from ..provision_options import Options as ProvisionOptions
    from ..schema import Policy
    from ..sessions.evidence import Evidence
    from ..sessions.tree_read import Tree
    from .policy import ServicesPolicy


class Services(Place["ServicesPolicy"]):
    """``services`` of a policy."""

    name = "services"
    names = ("service:UNIT", "new-service:system", "new-service:USER")
    is_provisioned = True

    def check(
        self, asked: ServicesPolicy, options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check import check_services

        return check_services(asked, options.canary, evidence, options.probe)

    def foresee(self, asked: ServicesPolicy, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .image import look_at_services

        return look_at_services(asked, tree)

    def list_folders(self) -> Iterable[str]:
        from .read import list_dropin_folders

        return list_dropin_folders()

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .policy import ServicesPolicy
        from .provision import ServicesOptions, prepare_services

        chosen = ServicesOptions(options.services_restart, options.override, options.absent)
        return prepare_services(policy.services or ServicesPolicy(), nr_open, chosen)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        from .policy import TASKS

        if kind == "new-service" or (kind == "service" and item == TASKS):
            from .explain import trace_new_service, trace_tasks

            if kind == "service":
                return trace_tasks(name, evidence)
            return trace_new_service(f"{kind}:{name}", item, evidence)
        if kind == "service":
            from ..processes.explain import trace_unit

            return trace_unit(name, require_limit(item), evidence)
        return None

    def resolve(self, root: str, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_services

        return resolve_services(root, query)

    def adopt(self, root: str) -> Adopted | None:
        from .adopt import adopt_tree_services

        return adopt_tree_services(root)

    def codes(self) -> Codes:
        from ..processes.causes import CODES as PROCESS
        from ..systemd.causes import CODES as UNIT
        from ..systemd.nr_open import CODES as NR_OPEN
        from .logind_causes import CODES as LOGIND
        from .tasks_causes import CODES as OF_TASKS

        place = self.names[0]
        own = ((place, codes) for codes in (UNIT, NR_OPEN, PROCESS, OF_TASKS))
        return (*own, ("logind", LOGIND))
