# SPDX-License-Identifier: BSD-2-Clause
"""Services: what systemd gives to units and to users' managers, and logind."""

from __future__ import annotations

from ..core.policy import Switch
from ..host.place import Place, require_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..core.adopted import Adopted
    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions
    from ..core.resolved import Query
    from ..host.image import Tree
    from ..host.look import Look
    from ..host.place import Codes, Foretold
    from .policy import ServicesPolicy


class Services(Place["ServicesPolicy"]):
    """``services`` of a policy."""

    name = path = "services"
    about = "systemd's services and user managers"
    names = ("service:UNIT", "new-service:system", "new-service:USER")
    is_provisioned = True
    switches = {
        "services_restart": Switch("list", [], "services to restart where that is needed, by name")
    }

    def read_policy(self, raw: object, problems: list[str]) -> ServicesPolicy | None:
        from .policy import read_services

        return read_services(raw, problems)

    def list_units(self, asked: ServicesPolicy) -> Mapping[str, str]:
        return {unit: f"services.units.{unit}" for unit in asked.units}

    def check(self, asked: ServicesPolicy, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_services

        return check_services(asked, options.canary, look, options.probe)

    def foresee(self, asked: ServicesPolicy, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .image import look_at_services

        return look_at_services(asked, tree)

    def is_made(self, root: str) -> bool:
        from .made_read import is_made

        return is_made(root)

    def list_folders(self) -> Iterable[str]:
        from .read import list_dropin_folders

        return list_dropin_folders()

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .policy import ServicesPolicy
        from .provision import ServicesOptions, prepare_services

        restart = tuple(self.read_switch(options, "services_restart"))
        chosen = ServicesOptions(restart, options.override, options.absent)
        return prepare_services(policy.get(self.name) or ServicesPolicy(), nr_open, chosen)

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        from .policy import TASKS

        if kind == "new-service" or (kind == "service" and item == TASKS):
            from .explain import trace_new_service, trace_tasks

            if kind == "service":
                return trace_tasks(name, look)
            return trace_new_service(f"{kind}:{name}", item, look)
        if kind == "service":
            from ..processes.explain import trace_unit

            return trace_unit(name, require_limit(item), look)
        return None

    def resolve(self, tree: Tree, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_services

        return resolve_services(tree, query)

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
