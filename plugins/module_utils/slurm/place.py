# SPDX-License-Identifier: BSD-2-Clause
"""Slurm: what jobs have, and the steps that run."""

from __future__ import annotations

import re

from ..core.policy import Switch
from ..host.place import Place, require_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.cause import Link
    from ..core.finding import Finding
    from ..core.plan import Section
    from ..core.policy import CheckOptions, Policy, ProvisionOptions
    from ..host.image import Tree
    from ..host.look import Look
    from ..host.place import Codes, Foretold
    from .policy import SlurmPolicy

_JOB = r"slurm(?:/[A-Za-z0-9_.+-]+)?(?:@ssh)?"


class Slurm(Place["SlurmPolicy"]):
    """``jobs.slurm`` of a policy."""

    name = "slurm"
    path = "jobs.slurm"
    about = "jobs of Slurm"
    names = ("job:slurm", "job:slurm/PARTITION", "job:slurm@ssh")
    is_provisioned = True
    own_files = ("/etc/systemd/system/slurmd.service.d/90-mlhost-slurm.conf",)
    marked_file = "/etc/slurm/slurm.conf"
    switches = {
        "slurm_restart": Switch("bool", False, "restart slurmd where that is needed; steps go on"),
        "slurm_conf": Switch(
            "bool", False, "keep a login from deciding the limits of its jobs, in slurm.conf"
        ),
    }

    def read_policy(self, raw: object, problems: list[str]) -> SlurmPolicy | None:
        from .policy import read_slurm

        return read_slurm(raw, problems)

    def list_units(self, asked: SlurmPolicy) -> Mapping[str, str]:
        return {"slurmd.service": f"{self.path}.limits"} if asked.limits else {}

    def check(self, asked: SlurmPolicy, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_slurm

        asks = options.canary != "never"
        return check_slurm(asked, options.users, asks, options.probe, look)

    def prepare(self, policy: Policy, options: ProvisionOptions, nr_open: int | None) -> Section:
        from .plan import SlurmOptions
        from .policy import SlurmPolicy
        from .provision import prepare_slurm

        chosen = SlurmOptions(
            options.override, options.absent, self.read_switch(options, "slurm_conf")
        )
        wanted = policy.get(self.name) or SlurmPolicy({})
        return prepare_slurm(wanted, nr_open, chosen, self.read_switch(options, "slurm_restart"))

    def explain(self, kind: str, name: str, item: str, look: Look) -> Sequence[Link] | None:
        if kind != "job" or not re.fullmatch(_JOB, name):
            return None
        from .explain import trace_slurm

        return trace_slurm(f"{kind}:{name}", require_limit(item), look)

    def codes(self) -> Codes:
        from .adoption import CODES as ADOPTION
        from .causes import CODES
        from .confine_causes import CODES as CONFINES

        job, _partition, login = self.names
        return ((job, CODES), (job, CONFINES), (login, ADOPTION))


class Steps(Place["SlurmPolicy"]):
    """Steps of jobs that run: they keep what they started with, whatever new ones get."""

    name = "slurm_steps"
    path = Slurm.path
    about = Slurm.about

    def read_policy(self, raw: object, problems: list[str]) -> SlurmPolicy | None:
        from .policy import read_slurm

        return read_slurm(raw, problems)

    def check(self, asked: SlurmPolicy, options: CheckOptions, look: Look) -> Iterable[Finding]:
        from .check import check_steps

        return check_steps(asked, look)

    def foresee(self, asked: SlurmPolicy, options: CheckOptions, tree: Tree) -> Foretold | None:
        return ()
