# SPDX-License-Identifier: BSD-2-Clause
"""The host's /dev/shm."""

from __future__ import annotations

from ..host.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions
    from ..core.resolved import Query
    from ..host.image import Tree
    from ..host.look import Look
    from ..host.place import Codes, Foretold


class SharedMemory(Place["int"]):
    """``shared_memory`` of a policy."""

    name = path = "shared_memory"
    about = "the host's /dev/shm"
    names = ("path:/dev/shm",)
    is_provisioned = True
    marked_file = "/etc/fstab"

    def read_policy(self, raw: object, problems: list[str]) -> int | None:
        from .policy import read_shared_memory

        return read_shared_memory(raw, problems)

    def check(self, asked: int, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_quotas, check_shm

        return (check_shm(asked), *check_quotas(asked))

    def foresee(self, asked: int, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .check import foresee_shm

        return foresee_shm(asked, tree.root)

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .provision import prepare_shm

        return prepare_shm(policy.get(self.name), options.override, options.absent)

    def resolve(self, tree: Tree, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_shm

        return resolve_shm(tree)

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        if kind != "path":
            return None
        from .check import trace_path

        return trace_path(f"{kind}:{name}", item)

    def codes(self) -> Codes:
        from .causes import CODES

        return ((self.names[0], CODES),)
