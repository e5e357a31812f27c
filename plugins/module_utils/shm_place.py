# SPDX-License-Identifier: BSD-2-Clause
"""The host's /dev/shm."""

from __future__ import annotations

from .place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .check_options import Options as CheckOptions
    from .place import Codes, Foretold
    from .policy.cause import Link
    from .policy.finding import Finding
    from .policy.schema import Policy
    from .probe.evidence import Evidence
    from .probe.tree import Tree
    from .provision_options import Options as ProvisionOptions
    from .section import Section


class SharedMemory(Place["int"]):
    """``shared_memory`` of a policy."""

    name = "shared_memory"
    names = ("path:/dev/shm",)
    is_provisioned = True

    def check(self, asked: int, options: CheckOptions, evidence: Evidence) -> Iterable[Finding]:
        from .check_shm import check_shm

        return (check_shm(asked),)

    def foresee(self, asked: int, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .check_shm import foresee_shm

        return foresee_shm(asked, tree.root)

    def list_folders(self) -> Iterable[str]:
        from .provision_shm import FOLDERS

        return FOLDERS

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .provision_shm import prepare_shm

        return prepare_shm(policy.shared_memory, options.override, options.absent)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        if kind != "path":
            return None
        from .check_shm import trace_path

        return trace_path(f"{kind}:{name}", item)

    def codes(self) -> Codes:
        from .policy.shm_causes import CODES

        return ((self.names[0], CODES),)
