# SPDX-License-Identifier: BSD-2-Clause
"""Slurm: what jobs have, and the steps that run."""

from __future__ import annotations

import re

from ..core.place import Place, require_limit

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
    from .policy import SlurmPolicy

_JOB = re.compile(r"slurm(?:/[A-Za-z0-9_.+-]+)?(?:@ssh)?")


class Slurm(Place["SlurmPolicy"]):
    """``jobs.slurm`` of a policy."""

    name = "slurm"
    names = ("job:slurm", "job:slurm/PARTITION", "job:slurm@ssh")
    is_provisioned = True

    def check(
        self, asked: SlurmPolicy, options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check import check_slurm

        asks = options.canary != "never"
        return check_slurm(asked, options.users, asks, options.probe, evidence)

    def list_folders(self) -> Iterable[str]:
        from .provision import FOLDERS

        return FOLDERS

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .plan import SlurmOptions
        from .policy import SlurmPolicy
        from .provision import prepare_slurm

        chosen = SlurmOptions(options.override, options.absent, options.slurm_conf)
        wanted = policy.slurm or SlurmPolicy({})
        return prepare_slurm(wanted, nr_open, chosen, options.slurm_restart)

    def explain(self, kind: str, name: str, item: str, evidence: Evidence) -> Sequence[Link] | None:
        if kind != "job" or not _JOB.fullmatch(name):
            return None
        from .explain import trace_slurm

        return trace_slurm(f"{kind}:{name}", require_limit(item), evidence)

    def codes(self) -> Codes:
        from .adoption import CODES as ADOPTION
        from .causes import CODES
        from .confine_causes import CODES as CONFINES

        job, _partition, login = self.names
        return ((job, CODES), (job, CONFINES), (login, ADOPTION))


class Steps(Place["SlurmPolicy"]):
    """Steps of jobs that run: they keep what they started with, whatever new ones get."""

    name = "slurm_steps"

    def find_asked(self, policy: Policy) -> SlurmPolicy | None:
        return policy.slurm

    def check(
        self, asked: SlurmPolicy, options: CheckOptions, evidence: Evidence
    ) -> Iterable[Finding]:
        from .check import check_steps

        return check_steps(asked, evidence)

    def foresee(self, asked: SlurmPolicy, options: CheckOptions, tree: Tree) -> Foretold | None:
        return ()
