# SPDX-License-Identifier: BSD-2-Clause
"""Podman: what its containers have, root's and users'."""

from __future__ import annotations

from ..host.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..containers.policy import ContainerPolicy
    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions
    from ..core.resolved import Query
    from ..host.image import Tree
    from ..host.look import Look
    from ..host.place import Codes, Foretold

_SHARE_OF_A_USER = 0.3  # Of the time limit: the most that one user's container may take of it.


class Podman(Place["ContainerPolicy"]):
    """``containers.podman`` of a policy."""

    name = "podman"
    path = "containers.podman"
    about = "Podman"
    names = (
        "new-container:podman",
        "new-container:podman/USER",
        "container:podman/NAME",
        "container:podman/USER/NAME",
    )
    is_provisioned = True
    own_files = ("/etc/containers/containers.conf.d/90-mlhost.conf",)

    def read_policy(self, raw: object, problems: list[str]) -> ContainerPolicy | None:
        from .policy import read_podman

        return read_podman(raw, problems)

    def check(self, asked: ContainerPolicy, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_podman

        seconds = options.time_limit * _SHARE_OF_A_USER
        return check_podman(asked, options.canary, look, seconds)

    def foresee(self, asked: ContainerPolicy, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .image import foresee_podman

        return foresee_podman(asked, tree)

    def list_folders(self) -> Iterable[str]:
        from .provision import FOLDERS

        return FOLDERS

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from ..containers.policy import ContainerPolicy
        from .provision import prepare_podman

        rules = policy.get("sessions") if options.wants("sessions") else None
        asked = policy.get(self.name) or ContainerPolicy({})
        how = (options.absent, options.override)
        return prepare_podman(asked, nr_open, *how, tuple(rules or ()))

    def resolve(self, tree: Tree, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_podman

        return resolve_podman(tree)

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        engine, _slash, rest = name.partition("/")
        if kind not in ("container", "new-container") or engine != self.name:
            return None
        from .explain import trace_podman, trace_running

        if kind == "new-container":
            return trace_podman(rest, item, look)
        return trace_running(f"{kind}:{name}", item, look)

    def codes(self) -> Codes:
        from .causes import CODES
        from .quadlet import CODES as QUADLET
        from .running import CODES as RUNNING

        return ((self.names[0], CODES), (self.names[2], RUNNING), (self.names[2], QUADLET))
