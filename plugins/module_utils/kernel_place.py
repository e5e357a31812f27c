# SPDX-License-Identifier: BSD-2-Clause
"""The kernel: sysctls, now and after a boot."""

from __future__ import annotations

from .place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .check_options import Options as CheckOptions
    from .place import Codes, Foretold
    from .policy.adopted import Adopted
    from .policy.cause import Link
    from .policy.finding import Finding
    from .policy.kernel_policy import KernelValue
    from .policy.resolved import Query
    from .probe.evidence import Evidence
    from .probe.tree import Tree


class Kernel(Place["Mapping[str, KernelValue]"]):
    """``kernel`` of a policy."""

    name = "kernel"
    names = ("kernel",)
    is_provisioned = True

    def check(
        self, asked: Mapping[str, KernelValue], options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .explain_kernel import check_kernel

        return check_kernel(asked, evidence)

    def foresee(
        self, asked: Mapping[str, KernelValue], options: CheckOptions, tree: Tree
    ) -> Foretold | None:
        from .kernel_image import foresee_kernel

        return foresee_kernel(asked, tree)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        if kind != "kernel" or name:
            return None
        from .explain_kernel import trace_kernel

        return trace_kernel(item, evidence)

    def resolve(self, root: str, query: Query) -> Iterator[dict[str, object]]:
        from .kernel_resolve import resolve_kernel

        return resolve_kernel(root)

    def adopt(self, root: str) -> Adopted | None:
        from .kernel_adopt import adopt_tree_kernel

        return adopt_tree_kernel(root)

    def codes(self) -> Codes:
        from .policy.kernel_causes import CODES

        return (("kernel", CODES),)
