# SPDX-License-Identifier: BSD-2-Clause
"""CRI-O: what its containers have, which its own files state."""

from __future__ import annotations

from ..core.policy import Switch
from ..host.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..containers.policy import ContainerPolicy
    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions
    from ..host.image import Tree
    from ..host.look import Look
    from ..host.place import Codes, Foretold


class Crio(Place["ContainerPolicy"]):
    """``containers.crio`` of a policy."""

    name = "crio"
    path = "containers.crio"
    about = "CRI-O, and Kubernetes above it"
    names = ("new-container:crio",)
    is_provisioned = True
    own_files = ("/etc/crio/crio.conf.d/99-mlhost-limits.conf",)
    switches = {
        "crio_restart": Switch("bool", False, "restart crio where that is needed; containers go on")
    }

    def read_policy(self, raw: object, problems: list[str]) -> ContainerPolicy | None:
        from .policy import read_crio

        return read_crio(raw, problems)

    def check(self, asked: ContainerPolicy, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_crio

        return check_crio(asked, look)

    def foresee(self, asked: ContainerPolicy, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .image import foresee_crio

        return foresee_crio(asked, tree)

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from ..containers.policy import ContainerPolicy
        from .provision import prepare_crio

        asked = policy.get(self.name) or ContainerPolicy({})
        how = (options.absent, options.override, self.read_switch(options, "crio_restart"))
        return prepare_crio(asked, nr_open, *how)

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        if f"{kind}:{name}" not in self.names:
            return None
        from .explain import trace_crio

        return trace_crio(item, look)

    def codes(self) -> Codes:
        from .causes import CODES

        return ((self.names[0], CODES),)
