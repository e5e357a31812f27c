# SPDX-License-Identifier: BSD-2-Clause
"""Gather what a training run needs and what awaits it, each thing when it is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property

from ..containers.policy import ContainerPolicy
from ..core.finding import FAIL, Finding, Observation, Requirement, judge, judge_limits
from ..core.policy import CheckOptions
from ..core.reader import Limit
from ..core.values import UNLIMITED, Rlimit
from ..host.look import Look, read_limits, read_process
from ..services.policy import ServicesPolicy, UnitRule
from ..sessions.policy import SessionRule
from ..shared_memory.model import SHM, Quota
from ..shared_memory.quota_read import read_quota
from ..slurm.policy import SlurmPolicy
from .causes import Room
from .loader import (
    CPUS,
    DESCRIPTORS,
    MEMORY,
    Bound,
    Plan,
    bound_by_cpus,
    bound_by_descriptors,
    bound_by_memory,
    bound_by_shared_memory,
    count_addresses,
    count_descriptors,
    count_memory,
    count_shared_memory,
    plan_workers,
    returns_memory,
)
from .policy import SELF, Training, choose_checks
from .runner_read import NEW_CONTAINER, Cpus, Runner
from .shm_read import read_free, read_size
from .tasks import TASKS, TaskRoom, bound_by_tasks, count_tasks
from .tasks_read import count_tasks_of

_THREADS = r"\s*([1-9][0-9]{0,5})\s*(?:,.*)?"
SHM_SIZE = "shm_size"
"""The item of a container's /dev/shm, as the check of Docker names it."""


class Survey:
    """One look at what a run needs and at what awaits it; each thing is read when it is asked."""

    def __init__(self, run: Training, options: CheckOptions, look: Look) -> None:
        if run.returns_memory is None and run.place == SELF and returns_memory(os.environ):
            run = run._replace(returns_memory=True)
        self.run, self.options, self.look = run, options, look
        self.checks = choose_checks(run)
        self.runner = Runner(run.place, look)
        self.place = self.runner.label
        self.workers = run.workers or 0

    @property
    def stranger(self) -> Finding | None:
        """Return that nobody knows what a user gets whom this host does not have."""
        for name in filter(None, (self.runner.user, self.run.user)):
            if not self.runner.knows(name):
                wanted = Requirement(self.place, "user", "value", exact=name)
                return judge(wanted, Observation(None, "", f"this host has no user {name}"))
        return None

    @property
    def _wanted(self) -> dict[str, Limit]:
        """Return the limits that the run needs."""
        wanted = {}
        if "descriptors" in self.checks:
            needed = count_descriptors(self.run, self.workers)
            wanted["nofile"] = Limit(needed, needed)
        if "memory" in self.checks and self.run.pinned_buffer and not self.runner.may_lock:
            wanted["memlock"] = Limit(self.run.pinned_buffer, self.run.pinned_buffer)
        if "memory" in self.checks and self.run.worker_memory:
            wanted["data"] = Limit(self.run.worker_memory)
        if "memory" in self.checks and self.mapped:
            wanted["as"] = Limit(self.mapped)
        if "output" in self.checks and self.run.checkpoint_size:
            wanted["fsize"] = Limit(self.run.checkpoint_size)
        if "tasks" in self.checks and self._is_bound_by_nproc:
            wanted["nproc"] = Limit(self.user_tasks + self.needed_tasks)
        return wanted

    @property
    def mapped(self) -> int:
        """Return the bytes of address space of the largest process."""
        return count_addresses(self.run, self.workers)

    @cached_property
    def limits(self) -> list[Finding]:
        """Return what the process that will run gets, without what the run makes of it."""
        shm = None
        if self.run.place == NEW_CONTAINER and "shared_memory" in self.checks:
            shm = count_shared_memory(self.run, self.workers) or None
        options = self.options
        if self.run.user:
            options = options._replace(users=(self.run.user,))
        if not self._wanted and shm is None:
            return []
        return judge_runner(self.runner, self._wanted, shm, options, self.look)

    def find_limit(self, item: str) -> Rlimit | None:
        """Return the lowest limit that was seen."""
        seen = {"soft": UNLIMITED, "hard": UNLIMITED}
        told = False
        for finding in self.limits:
            value, bound = finding.observation.value, finding.requirement.bound
            if finding.requirement.item == item and isinstance(value, int) and bound in seen:
                seen[bound], told = min(seen[bound], value), True
        return Rlimit(seen["soft"], seen["hard"]) if told else None

    @cached_property
    def free_shm(self) -> int | str:
        """Return the free bytes of /dev/shm, or why nobody knows."""
        if self.run.place == NEW_CONTAINER:
            sizes = [one.observation for one in self.limits if one.requirement.item == SHM_SIZE]
            seen = sizes[0] if sizes else Observation(None, "", "no container was looked at")
            return seen.value if isinstance(seen.value, int) else seen.reason
        try:
            free = read_free(self.runner.find_shm())
        except OSError as exc:
            return str(exc)
        if isinstance(self.shm_quota, str):
            return self.shm_quota
        return min(free, self.shm_quota.free) if self.shm_quota else free

    @cached_property
    def shm_quota(self) -> Quota | str | None:
        """Return what the user who runs may take of /dev/shm, or why nobody knows."""
        try:
            folder, uid = self.runner.find_shm(), self.runner.uid
            pid = str(self.runner.pid or SELF)
            return None if uid is None else read_quota(uid, read_size(folder), folder, pid)
        except OSError as exc:
            return str(exc)

    @cached_property
    def rooms(self) -> list[Room] | str:
        """Return the memory that is left, the least first, or why nobody knows."""
        try:
            return sorted(self.runner.find_rooms(), key=lambda room: room.free)
        except (OSError, ValueError) as exc:
            return str(exc)

    @cached_property
    def user_tasks(self) -> int:
        """Return how many tasks the user who runs has already."""
        return count_tasks_of(self.runner.uid or 0) if self._is_bound_by_nproc else 0

    @property
    def _is_bound_by_nproc(self) -> bool:
        return self.runner.uid is not None and not self.runner.is_nproc_free

    @property
    def needed_tasks(self) -> int:
        return count_tasks(self.run, self.workers, self.threads)

    @cached_property
    def threads(self) -> int:
        """Return the threads of each process that trains; torchrun gives each of many ranks one."""
        told = os.environ.get("OMP_NUM_THREADS", "") if self.run.place == SELF else ""
        first = re.fullmatch(_THREADS, told)  # One number for each level of nesting.
        if self.run.threads or first:
            return self.run.threads or int(first[1] if first else 1)
        alone = self.run.ranks_per_node == 1 and not isinstance(self.cpus, str)
        return max(int(self.cpus[0].number), 1) if alone else 1  # type: ignore[union-attr]

    @cached_property
    def task_rooms(self) -> list[TaskRoom] | str:
        """Return what is left of each bound of all tasks, the least first, or why nobody knows."""
        try:
            return sorted(self.runner.find_task_rooms())
        except (OSError, ValueError) as exc:
            return str(exc)

    @cached_property
    def cpus(self) -> list[Cpus] | str:
        """Return what bounds the CPUs, the least first, or why nobody knows."""
        try:
            return sorted(self.runner.find_cpus(self.run.ranks_per_node))
        except (OSError, ValueError) as exc:
            return str(exc)

    @cached_property
    def bounds(self) -> list[Bound]:
        """Return every bound of what is checked that is known, and the CPUs in any case."""
        nofile, run, bounds = self.find_limit("nofile"), self.run, []
        if nofile:
            bounds.append(bound_by_descriptors(run, nofile.soft))
        if "shared_memory" in self.checks and isinstance(self.free_shm, int):
            bounds.append(bound_by_shared_memory(run, self.free_shm))
        if "memory" in self.checks and not isinstance(self.rooms, str):
            least = self.rooms[0]
            # Where the rest of the run does not fit, that is said, and no fault of the workers.
            if least.free >= count_memory(run, 0):
                bounds.append(bound_by_memory(run, least.free, least.where))
        bounds += self._bound_tasks()
        if not isinstance(self.cpus, str):
            hint = "" if "cpus" in self.checks else "; more of them only wait"
            few = self.cpus[0]
            bounds.append(bound_by_cpus(run, few.number, f"{few.why}{hint}"))
        return bounds

    def _bound_tasks(self) -> list[Bound]:
        if "tasks" not in self.checks or isinstance(self.task_rooms, str):
            return []
        nproc, least = self.find_limit("nproc"), self.task_rooms[0]
        if nproc and nproc.soft - self.user_tasks < least.free:
            least = TaskRoom(max(nproc.soft - self.user_tasks, 0), nproc.soft, "nproc of the user")
        return [bound_by_tasks(self.run, self.threads, least)]

    @property
    def deadly(self) -> list[Bound]:
        """Return the bounds above which the run fails; more workers than CPUs only wait."""
        return [one for one in self.bounds if "cpus" in self.checks or one.name != CPUS]

    @cached_property
    def unseen(self) -> dict[str, str]:
        """Return which bounds of what is checked nobody knows, each with the reason."""
        seen: dict[str, tuple[str, object]] = {
            DESCRIPTORS: ("descriptors", self.find_limit("nofile") or self._tell_unseen("nofile")),
            SHM: ("shared_memory", "shared_memory" in self.checks and self.free_shm),
            MEMORY: ("memory", self.rooms),
            TASKS: ("tasks", self.task_rooms),
            CPUS: ("cpus", self.cpus),
        }
        return {
            name: why
            for name, (check, why) in seen.items()
            if check in self.checks and isinstance(why, str)
        }

    def _tell_unseen(self, item: str) -> str:
        reasons = [one.observation.reason for one in self.limits if one.requirement.item == item]
        return next(filter(None, reasons), "it was not seen")

    @property
    def unknown_bounds(self) -> str:
        """Return the names of those above which a run fails."""
        return ", ".join(name for name in self.unseen if name != CPUS)

    @cached_property
    def unknown(self) -> dict[str, str]:
        """Return those, and the bounds that are not counted for want of a number of the run."""
        lacking = {DESCRIPTORS: "tensors_per_batch", SHM: "batch_size"}
        unstated = {
            name: f"{key} is not stated"
            for name, key in lacking.items()
            if self.run.checks is None and getattr(self.run, key) is None
        }
        return {**self.unseen, **unstated}

    @cached_property
    def plan(self) -> Plan:
        """Return how many workers the run survives with, and every bound."""
        return Plan(plan_workers(self.deadly).workers, tuple(self.bounds), self.unknown)


def judge_runner(
    runner: Runner,
    limits: Mapping[str, Limit],
    shm_size: int | None,
    options: CheckOptions,
    look: Look,
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
    place: str, limits: Mapping[str, Limit], options: CheckOptions, look: Look
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
    runner: Runner, policy: ContainerPolicy, options: CheckOptions, look: Look
) -> list[Finding]:
    from ..containers.findings import judge_container_unknown
    from ..docker.check import check_docker

    is_new = runner.place == NEW_CONTAINER
    if runner.absence:
        return judge_container_unknown(runner.place, policy, runner.absence)
    found = check_docker(policy, options.canary if is_new else "never", look)
    return [one for one in found if one.requirement.place == runner.label]
