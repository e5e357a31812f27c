# SPDX-License-Identifier: BSD-2-Clause
"""The kernel: sysctls, now and after a boot."""

from __future__ import annotations

from ..core.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..core.adopted import Adopted
    from ..core.cause import Link
    from ..core.check_options import Options as CheckOptions
    from ..core.finding import Finding
    from ..core.place import Codes, Foretold
    from ..core.resolved import Query
    from ..sessions.evidence import Evidence
    from ..sessions.tree_read import Tree
    from .policy import KernelValue


class Kernel(Place["Mapping[str, KernelValue]"]):
    """``kernel`` of a policy."""

    name = "kernel"
    names = ("kernel",)
    is_provisioned = True

    def check(
        self, asked: Mapping[str, KernelValue], options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .diagnose import check_kernel

        return check_kernel(asked, evidence)

    def foresee(
        self, asked: Mapping[str, KernelValue], options: CheckOptions, tree: Tree
    ) -> Foretold | None:
        from .image import foresee_kernel

        return foresee_kernel(asked, tree)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        if kind != "kernel" or name:
            return None
        from .diagnose import trace_kernel

        return trace_kernel(item, evidence)

    def resolve(self, root: str, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_kernel

        return resolve_kernel(root)

    def adopt(self, root: str) -> Adopted | None:
        from .adopt import adopt_tree_kernel

        return adopt_tree_kernel(root)

    def codes(self) -> Codes:
        from .causes import CODES

        return (("kernel", CODES),)
