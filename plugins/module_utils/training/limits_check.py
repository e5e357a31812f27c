# SPDX-License-Identifier: BSD-2-Clause
"""Judge the limits of the process that will run a training, by the check that knows its place."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..containers.policy import ContainerPolicy
from ..core.finding import FAIL, Finding, judge_limits
from ..host.process import read_limits, read_process
from ..services.policy import ServicesPolicy, UnitRule
from ..sessions.policy import SessionRule
from ..slurm.policy import SlurmPolicy
from .policy import SELF
from .runner_read import NEW_CONTAINER, Runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.check_options import Options
    from ..core.reader import Limit
    from ..host.look import Look


def judge_runner(
    runner: Runner, limits: Mapping[str, Limit], shm_size: int | None, options: Options, look: Look
) -> list[Finding]:
    """Return the findings of the process that will run, each with what is at fault.

    :param shm_size: What /dev/shm of a container that is not there yet must have.
    """
    kind, name = runner.place.partition(":")[::2]
    if runner.place == SELF:
        return _judge_self(runner.label, limits, options, look)
    if kind == "session":
        from ..sessions.check import check_sessions

        user, service = name.rpartition("@")[::2]
        rules = (SessionRule((user,), limits),)
        return list(check_sessions(rules, [user], [service], options.probe, look))
    if kind == "service":
        from ..services.check import check_services

        policy = ServicesPolicy(units={name: UnitRule(limits)})
        return list(check_services(policy, "never", look, options.probe))
    if kind == "job":
        from ..slurm.check import check_slurm

        asks = options.canary != "never"
        wanted = SlurmPolicy(limits)
        return list(check_slurm(wanted, options.users, asks, options.probe, look, False))
    return _judge_container(runner, ContainerPolicy(limits, shm_size), options, look)


def _judge_self(
    place: str, limits: Mapping[str, Limit], options: Options, look: Look
) -> list[Finding]:
    own = read_limits(SELF)
    findings = judge_limits(place, limits, own, "/proc/self/limits")
    if options.probe == "predict" or all(one.status != FAIL for one in findings):
        return findings
    from ..processes.diagnose import explain_process  # Long, and seldom needed.
    from ..systemd.read import Seen, World

    seen = Seen(read_process(os.getpid()), own, limits, findings)
    return explain_process(seen, World(look, options.probe))


def _judge_container(
    runner: Runner, policy: ContainerPolicy, options: Options, look: Look
) -> list[Finding]:
    from ..containers.findings import judge_container_unknown
    from ..docker.check import check_docker

    is_new = runner.place == NEW_CONTAINER
    if runner.absence:
        return judge_container_unknown(runner.place, policy, runner.absence)
    found = check_docker(policy, options.canary if is_new else "never", look)
    return [one for one in found if one.requirement.place == runner.label]
