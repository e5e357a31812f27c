# SPDX-License-Identifier: BSD-2-Clause
"""Docker: what its containers have, root's and rootless ones."""

from __future__ import annotations

from ..core.place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.adopted import Adopted
    from ..core.cause import Link
    from ..core.check_options import Options as CheckOptions
    from ..core.finding import Finding
    from ..core.place import Codes, Foretold
    from ..core.resolved import Query
    from ..core.section import Section
    from ..provision_options import Options as ProvisionOptions
    from ..schema import Policy
    from ..sessions.evidence import Evidence
    from ..sessions.tree_read import Tree
    from .policy import DockerPolicy


class Docker(Place["DockerPolicy"]):
    """``containers.docker`` of a policy."""

    name = "docker"
    names = (
        "new-container:docker",
        "container:docker/NAME",
        "new-container:docker/USER",
        "container:docker/USER/NAME",
    )
    is_provisioned = True

    def check(
        self, asked: DockerPolicy, options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check import check_docker

        yield from check_docker(asked, options.canary, evidence)
        if evidence.docker.rootless:
            from .rootless_check import check_rootless  # On few hosts.

            yield from check_rootless(asked, options.canary, evidence)

    def foresee(self, asked: DockerPolicy, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .image import foresee_docker

        return foresee_docker(asked, tree)

    def list_folders(self) -> Iterable[str]:
        from .provision import FOLDERS

        return FOLDERS

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .policy import DockerPolicy
        from .provision import prepare_docker

        wanted = policy.docker or DockerPolicy({}, None)
        return prepare_docker(wanted, nr_open, options.absent, options.docker_restart)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        if kind not in ("container", "new-container") or name.partition("/")[0] != self.name:
            return None
        from .explain import trace_docker

        return trace_docker(f"{kind}:{name}", item, evidence)

    def resolve(self, root: str, query: Query) -> Iterator[dict[str, object]]:
        from .resolve import resolve_docker

        return resolve_docker(root)

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
