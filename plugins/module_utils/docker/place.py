# SPDX-License-Identifier: BSD-2-Clause
"""Docker: what its containers have, root's and rootless ones."""

from __future__ import annotations

from ..core.policy import Switch
from ..host.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..containers.policy import ContainerPolicy
    from ..core.adopted import Adopted
    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions
    from ..core.resolved import Query
    from ..host.image import Tree
    from ..host.look import Look
    from ..host.place import Codes, Foretold


_SHARE_OF_USERS = 0.3
"""Of the time of a check: users' own daemons may take it all, and hold nothing else up."""


class Docker(Place["ContainerPolicy"]):
    """``containers.docker`` of a policy."""

    name = "docker"
    path = "containers.docker"
    about = "Docker"
    names = (
        "new-container:docker",
        "container:docker/NAME",
        "new-container:docker/USER",
        "container:docker/USER/NAME",
    )
    is_provisioned = True
    switches = {
        "docker_restart": Switch(
            "bool", False, "restart Docker where that is needed; this ends running containers"
        )
    }

    def read_policy(self, raw: object, problems: list[str]) -> ContainerPolicy | None:
        from .policy import read_docker

        return read_docker(raw, problems)

    def check(self, asked: ContainerPolicy, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_docker
        from .read import DockerRead

        yield from check_docker(asked, options.canary, look)
        if look.at(DockerRead).rootless:
            from .rootless_check import check_rootless  # On few hosts.

            seconds = options.time_limit * _SHARE_OF_USERS
            yield from check_rootless(asked, options.canary, look, seconds)

    def foresee(self, asked: ContainerPolicy, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .image import foresee_docker

        return foresee_docker(asked, tree)

    def is_made(self, root: str) -> bool:
        from .made_read import is_made

        return is_made(root)

    def list_folders(self) -> Iterable[str]:
        from .provision import FOLDERS

        return FOLDERS

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from ..containers.policy import ContainerPolicy
        from .provision import prepare_docker

        wanted = policy.get(self.name) or ContainerPolicy({}, None)
        return prepare_docker(
            wanted, nr_open, options.absent, self.read_switch(options, "docker_restart")
        )

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        if kind not in ("container", "new-container") or name.partition("/")[0] != self.name:
            return None
        from .explain import trace_docker

        return trace_docker(f"{kind}:{name}", item, look)

    def resolve(self, tree: Tree, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_docker

        return resolve_docker(tree)

    def adopt(self, root: str) -> Adopted | None:
        from .adopt import adopt_tree_docker

        return adopt_tree_docker(root)

    def codes(self) -> Codes:
        from .causes import CODES
        from .compose import CODES as COMPOSE
        from .obstacles import CODES as OBSTACLES
        from .rootless import CODES as ROOTLESS
        from .running import CODES as RUNNING

        new, running, rootless = self.names[:3]
        return (
            (new, CODES),
            (new, OBSTACLES),
            (rootless, ROOTLESS),
            (running, RUNNING),
            (running, COMPOSE),
        )
