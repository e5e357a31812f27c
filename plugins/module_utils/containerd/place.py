# SPDX-License-Identifier: BSD-2-Clause
"""containerd: what pods and other containers inherit."""

from __future__ import annotations

from ..core.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.cause import Link
    from ..core.check_options import Options as CheckOptions
    from ..core.finding import Finding
    from ..core.place import Codes
    from ..core.section import Section
    from ..provision_options import Options as ProvisionOptions
    from ..schema import Policy
    from ..sessions.evidence import Evidence
    from .policy import ContainerdPolicy


class Containerd(Place["ContainerdPolicy"]):
    """``containers.containerd`` of a policy."""

    name = "containerd"
    names = ("new-container:containerd",)
    is_provisioned = True

    def check(
        self, asked: ContainerdPolicy, options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check import check_containerd

        return check_containerd(asked, options.canary, evidence)

    def list_folders(self) -> Iterable[str]:
        from .provision import FOLDERS

        return FOLDERS

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .policy import ContainerdPolicy
        from .provision import prepare_containerd

        wanted = policy.containerd or ContainerdPolicy({})
        how = (options.absent, options.override, options.containerd_restart)
        return prepare_containerd(wanted, nr_open, *how)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        if f"{kind}:{name}" not in self.names:
            return None
        from .explain import trace_containerd

        return trace_containerd(item, evidence)

    def codes(self) -> Codes:
        from .causes import CODES

        return ((self.names[0], CODES),)
