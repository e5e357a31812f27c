# SPDX-License-Identifier: BSD-2-Clause
"""Podman: what its containers have, root's and users'."""

from __future__ import annotations

from .place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .check_options import Options as CheckOptions
    from .place import Codes, Foretold
    from .policy.cause import Link
    from .policy.finding import Finding
    from .policy.podman_policy import PodmanPolicy
    from .policy.schema import Policy
    from .probe.evidence import Evidence
    from .probe.tree import Tree
    from .provision_options import Options as ProvisionOptions
    from .section import Section

_SHARE_OF_A_USER = 0.3  # Of the time limit: the most that one user's container may take of it.


class Podman(Place["PodmanPolicy"]):
    """``containers.podman`` of a policy."""

    name = "podman"
    names = (
        "new-container:podman",
        "new-container:podman/USER",
        "container:podman/NAME",
        "container:podman/USER/NAME",
    )
    is_provisioned = True

    def check(
        self, asked: PodmanPolicy, options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check_podman import check_podman

        seconds = options.time_limit * _SHARE_OF_A_USER
        return check_podman(asked, options.canary, evidence, seconds)

    def foresee(self, asked: PodmanPolicy, options: CheckOptions, tree: Tree) -> Foretold | None:
        from .podman_image import foresee_podman

        return foresee_podman(asked, tree)

    def list_folders(self) -> Iterable[str]:
        from .provision_podman import FOLDERS

        return FOLDERS

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .policy.podman_policy import PodmanPolicy
        from .provision_podman import prepare_podman

        policy = policy._replace(podman=policy.podman or PodmanPolicy({}))
        sessions = options.wants("sessions")
        return prepare_podman(policy, nr_open, options.absent, options.override, sessions)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        engine, _slash, rest = name.partition("/")
        if kind not in ("container", "new-container") or engine != self.name:
            return None
        from .trace_podman import trace_podman, trace_running

        if kind == "new-container":
            return trace_podman(rest, item, evidence)
        return trace_running(f"{kind}:{name}", item, evidence)

    def codes(self) -> Codes:
        from .policy.podman_causes import CODES
        from .policy.podman_running import CODES as RUNNING
        from .policy.quadlet import CODES as QUADLET

        return ((self.names[0], CODES), (self.names[2], RUNNING), (self.names[2], QUADLET))
