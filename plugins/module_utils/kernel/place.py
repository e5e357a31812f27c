# SPDX-License-Identifier: BSD-2-Clause
"""The kernel: sysctls, now and after a boot."""

from __future__ import annotations

from ..core.policy import Switch
from ..host.place import Place

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
    from .policy import KernelValue


class Kernel(Place["Mapping[str, KernelValue]"]):
    """``kernel`` of a policy."""

    name = path = "kernel"
    kind, about = "by name", "sysctls by their names"
    names = ("kernel",)
    is_provisioned = is_always_planned = True
    switches = {
        "kernel_file": Switch(
            "path", "/etc/sysctl.d/90-mlhost.conf", "the file for the kernel's values"
        )
    }

    def read_policy(self, raw: object, problems: list[str]) -> Mapping[str, KernelValue] | None:
        from .policy import read_kernel

        return read_kernel(raw, problems)

    def spell(self, raw: object) -> object:
        from .policy import with_normal_keys

        return with_normal_keys(raw)

    def find_doubles(self, raw: object) -> Iterable[str]:
        from .policy import find_second_names

        return find_second_names(raw)

    def check(
        self, asked: Mapping[str, KernelValue], options: CheckOptions, look: Look
    ) -> Iterable[Finding]:
        from .diagnose import check_kernel

        return check_kernel(asked, look)

    def foresee(
        self, asked: Mapping[str, KernelValue], options: CheckOptions, tree: Tree
    ) -> Foretold | None:
        from .image import foresee_kernel

        return foresee_kernel(asked, tree)

    def list_folders(self) -> Iterable[str]:
        from .sysctl_conf import SYSCTL_DIRECTORIES

        return SYSCTL_DIRECTORIES

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .plan import KernelOptions
        from .provision import prepare_kernel

        target = self.read_switch(options, "kernel_file")
        chosen = KernelOptions(target, options.override, options.absent)
        return prepare_kernel(policy.get(self.name) or {}, chosen)

    def leave(self) -> Section:
        from .provision import leave_kernel

        return leave_kernel()

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        if kind != "kernel" or name:
            return None
        from .diagnose import trace_kernel

        return trace_kernel(item, look)

    def resolve(self, tree: Tree, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_kernel

        return resolve_kernel(tree)

    def adopt(self, root: str) -> Adopted | None:
        from .adopt import adopt_tree_kernel

        return adopt_tree_kernel(root)

    def codes(self) -> Codes:
        from .causes import CODES

        return (("kernel", CODES),)
