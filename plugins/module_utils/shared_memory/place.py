# SPDX-License-Identifier: BSD-2-Clause
"""The host's /dev/shm."""

from __future__ import annotations

from ..core.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.cause import Link
    from ..core.check_options import Options as CheckOptions
    from ..core.finding import Finding
    from ..core.place import Codes, Foretold
    from ..core.section import Section
    from ..provision_options import Options as ProvisionOptions
    from ..schema import Policy
    from ..sessions.evidence import Evidence
    from ..sessions.tree_read import Tree


class SharedMemory(Place["int"]):
    """``shared_memory`` of a policy."""

    name = "shared_memory"
    names = ("path:/dev/shm",)
    is_provisioned = True

    def check(self, asked: int, options: CheckOptions, evidence: Evidence) -> Iterable[Finding]:
        from .check import check_shm

        return (check_shm(asked),)

    def foresee(self, asked: int, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .check import foresee_shm

        return foresee_shm(asked, tree.root)

    def list_folders(self) -> Iterable[str]:
        from .provision import FOLDERS

        return FOLDERS

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .provision import prepare_shm

        return prepare_shm(policy.shared_memory, options.override, options.absent)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        if kind != "path":
            return None
        from .check import trace_path

        return trace_path(f"{kind}:{name}", item)

    def codes(self) -> Codes:
        from .causes import CODES

        return ((self.names[0], CODES),)
