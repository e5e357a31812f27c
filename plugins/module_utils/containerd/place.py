# SPDX-License-Identifier: BSD-2-Clause
"""containerd: what pods and other containers inherit."""

from __future__ import annotations

from ..core.policy import Switch
from ..host.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..containers.policy import ContainerPolicy
    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions
    from ..host.look import Look
    from ..host.place import Codes


class Containerd(Place["ContainerPolicy"]):
    """``containers.containerd`` of a policy."""

    name = "containerd"
    path = "containers.containerd"
    about = "containerd, and Kubernetes above it"
    names = ("new-container:containerd",)
    is_provisioned = True
    own_files = ("/etc/systemd/system/containerd.service.d/90-mlhost-containers.conf",)
    switches = {
        "containerd_restart": Switch(
            "bool", False, "restart containerd where that is needed; containers go on"
        )
    }

    def read_policy(self, raw: object, problems: list[str]) -> ContainerPolicy | None:
        from .policy import read_containerd

        return read_containerd(raw, problems)

    def list_units(self, asked: ContainerPolicy) -> Mapping[str, str]:
        return {"containerd.service": f"{self.path}.limits"} if asked.limits else {}

    def check(self, asked: ContainerPolicy, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_containerd

        return check_containerd(asked, options.canary, look)

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from ..containers.policy import ContainerPolicy
        from .provision import prepare_containerd

        wanted = policy.get(self.name) or ContainerPolicy({})
        how = (options.absent, options.override, self.read_switch(options, "containerd_restart"))
        return prepare_containerd(wanted, nr_open, *how)

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        if f"{kind}:{name}" not in self.names:
            return None
        from .explain import trace_containerd

        return trace_containerd(item, look)

    def codes(self) -> Codes:
        from .causes import CODES

        return ((self.names[0], CODES),)
