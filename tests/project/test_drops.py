# SPDX-License-Identifier: GPL-3.0-or-later
"""What a policy drops goes: the next run leaves what it would leave on a host that never had it,
and a third changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from mlhost_limits.containerd.plan import FOLDER, plan_containerd
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.reader import Limit
from mlhost_limits.crio.crio_conf import DROP_INS as OF_CRIO
from mlhost_limits.crio.plan import ENGINE
from mlhost_limits.kernel.plan import KernelOptions, plan_kernel
from mlhost_limits.kernel.policy import KernelValue
from mlhost_limits.podman.containers_conf import DROP_INS
from mlhost_limits.podman.plan import PodmanState, plan_podman
from mlhost_limits.services.plan import ServicesState, plan_services
from mlhost_limits.services.policy import ServicesPolicy, UnitRule
from mlhost_limits.sessions.pam_limits import LIMITS_CONF, LIMITS_D
from mlhost_limits.sessions.plan import SessionsOptions, plan_sessions
from mlhost_limits.sessions.policy import SessionRule
from mlhost_limits.shared_memory.plan import plan_shm
from mlhost_limits.slurm.plan import SlurmOptions, SlurmState, plan_slurm
from mlhost_limits.slurm.policy import SlurmPolicy
from mlhost_limits.systemd.model import Files, UnitFacts
from mlhost_limits.systemd.unit_file import Source
from mlhost_limits.workspace.plan import FSTAB, Workspace, plan_workspace

from tests.worlds.unit_world import MANAGER

Texts = Mapping[str, str]
SYSTEMD = "/etc/systemd"
C = "/etc/slurm/slurm.conf"
NOFILE, CORE = Limit(1024, 65536), Limit(1024, 1024)
MAIN = Source("/lib/systemd/system/x.service", "[Service]\nExecStart=/bin/x\n")


def held(files: Texts, folder: str) -> tuple[Source, ...]:
    return tuple(Source(path, files[path]) for path in files if path.startswith(f"{folder}/"))


def run_kernel(files: Texts, wanted: dict[str, int]) -> SectionPlan:
    values = {key: KernelValue(value) for key, value in wanted.items()}
    running: dict[str, str | None] = {"kernel.pid_max": "32768", "vm.max_map_count": "65530"}
    return plan_kernel(values, files, running, KernelOptions(override=True)).section


def run_sessions(files: Texts, limits: dict[str, Limit]) -> SectionPlan:
    rules = (SessionRule(("*", "root"), limits),) if limits else ()
    options = SessionsOptions(override=True)
    return plan_sessions(rules, files, Dialect(1023), 1048576, options)


def run_services(files: Texts, policy: ServicesPolicy) -> SectionPlan:
    manager = held(files, f"{SYSTEMD}/system.conf.d")
    unit = Files(MAIN, held(files, f"{SYSTEMD}/system/x.service.d"), None, manager)
    read = {
        "x.service": unit,
        "system.conf": Files(None, (), None, manager),
        "user.conf": Files(None, (), None, held(files, f"{SYSTEMD}/user.conf.d")),
        "logind.conf": Files(None, (), None, held(files, f"{SYSTEMD}/logind.conf.d")),
    }
    return plan_services(policy, ServicesState(files, read, 10000), 1048576, True)


def run_containerd(files: Texts, policy: ContainerPolicy) -> SectionPlan:
    return plan_containerd(policy, Files(MAIN, held(files, FOLDER)), 1048576, True)


def run_podman(files: Texts, policy: ContainerPolicy) -> SectionPlan:
    return plan_podman(policy, PodmanState(files), 1048576, override=True)


def run_crio(files: Texts, policy: ContainerPolicy) -> SectionPlan:
    return plan_podman(policy, PodmanState(files), 1048576, True, engine=ENGINE)


def run_slurm(files: Texts, policy: SlurmPolicy) -> SectionPlan:
    dropins = held(files, f"{SYSTEMD}/system/slurmd.service.d")
    facts = UnitFacts("slurmd.service", Files(MAIN, dropins), MANAGER)
    state = SlurmState(facts, {C: files[C]}, C)
    return plan_slurm(policy, state, 1048576, SlurmOptions(override=True, write_conf=True))


def run_shm(files: Texts, size: int | None) -> SectionPlan:
    return plan_shm(size, files.get(FSTAB), 2**32, True, False)


def run_workspace(files: Texts, wanted: Workspace) -> SectionPlan:
    return plan_workspace(wanted, files)


BOTH = {"nofile": NOFILE, "core": CORE}
ONE = {"nofile": NOFILE}
LOW = {"nofile": Limit(max=2**20)}
UNIT, UNITS = UnitRule(BOTH, 500), {"x.service": UnitRule(BOTH, 500)}
SPACE = Workspace("/scratch/cache", size=2**30, age="10d", variables=("A", "B"))
SECTIONS: dict[str, tuple[Callable[..., SectionPlan], Texts, list[object]]] = {
    "kernel": (
        run_kernel,
        {"/etc/sysctl.d/99-vendor.conf": "vm.max_map_count = 1\nkernel.pid_max = 2\n"},
        [{"vm.max_map_count": 262144, "kernel.pid_max": 99999}, {"kernel.pid_max": 99999}, {}],
    ),
    "sessions": (
        run_sessions,
        {LIMITS_CONF: "* hard core 0\n", f"{LIMITS_D}/99-x.conf": "* - nofile 5\n* - core 0\n"},
        [BOTH, ONE, {}],
    ),
    "services": (
        run_services,
        {f"{SYSTEMD}/system/x.service.d/95-x.conf": "[Service]\nLimitNOFILE=5\nTasksMax=9\n"},
        [
            ServicesPolicy(UNIT, UNIT, UNITS, False),
            ServicesPolicy(UNIT, UNIT, UNITS),
            ServicesPolicy(UNIT, UnitRule(ONE), {"x.service": UnitRule(ONE)}),
            ServicesPolicy(units={"x.service": UnitRule({}, 500)}),
            ServicesPolicy(),
        ],
    ),
    "containerd": (
        run_containerd,
        {f"{FOLDER}/95-x.conf": "[Service]\nLimitNOFILE=5\nLimitCORE=0\n"},
        [ContainerPolicy(BOTH), ContainerPolicy(ONE), ContainerPolicy(LOW)],
    ),
    "podman": (
        run_podman,
        {f"{DROP_INS}/95-x.conf": '[containers]\ndefault_ulimits = ["nofile=5:5"]\nshm_size="1"\n'},
        [
            ContainerPolicy(BOTH, 2**30),
            ContainerPolicy(BOTH),
            ContainerPolicy(ONE),
            ContainerPolicy({}, 2**30),
            ContainerPolicy(LOW),
        ],
    ),
    "crio": (
        run_crio,
        {f"{OF_CRIO}/zz": '[crio.runtime]\ndefault_ulimits = ["nofile=5:5"]\npids_limit = 5\n'},
        [
            ContainerPolicy(BOTH, tasks=500),
            ContainerPolicy(BOTH),
            ContainerPolicy(ONE),
            ContainerPolicy({}, tasks=500),
            ContainerPolicy(LOW),
        ],
    ),
    "slurm": (
        run_slurm,
        {
            C: "ClusterName=x\nPropagateResourceLimits=ALL\n",
            f"{SYSTEMD}/system/slurmd.service.d/95-x.conf": "[Service]\nLimitNOFILE=5\nLimitCORE=0\n",
        },
        [
            SlurmPolicy(BOTH),
            SlurmPolicy(ONE),
            SlurmPolicy(ONE, propagate=frozenset(("nofile", "core"))),
            SlurmPolicy({}),
        ],
    ),
    "shared_memory": (
        run_shm,
        {FSTAB: "tmpfs /dev/shm tmpfs size=1k 0 0\n"},
        [3 * 2**30, 2**29, None],
    ),
    "workspace": (
        run_workspace,
        {FSTAB: "/dev/sda / ext4 rw 0 1\n"},
        [
            SPACE,
            SPACE._replace(size=None),
            SPACE._replace(variables=("A",)),
            SPACE._replace(variables=(), age=""),
            SPACE._replace(absent=True),
        ],
    ),
}


def apply(files: Texts, planned: SectionPlan) -> dict[str, str]:
    assert not planned.problems
    after = dict(files)
    for edit in planned.edits:
        assert edit.before == (files[edit.path].encode() if edit.path in files else None)
        after.pop(edit.path, None)
        if edit.after is not None:
            after[edit.path] = edit.after.decode()
    return after


CASES = [
    pytest.param(name, first, last, id=f"{name} {first}-{last}")
    for name, (_run, _files, policies) in SECTIONS.items()
    for first in range(len(policies))
    for last in range(len(policies))
    if first != last
]


@pytest.mark.parametrize(("name", "first", "last"), CASES)
@pytest.mark.parametrize("bare", [True, False])
def test_what_a_policy_drops_goes(name: str, first: int, last: int, bare: bool) -> None:
    run, files, policies = SECTIONS[name]
    files = {C: "ClusterName=x\n", FSTAB: ""} if bare else files
    if name not in ("slurm", "shared_memory", "workspace"):
        files = {path: text for path, text in files.items() if path not in (C, FSTAB)}
    earlier, policy = policies[first], policies[last]
    once = apply(files, run(files, earlier))
    assert not run(once, earlier).edits
    twice = apply(once, run(once, policy))
    assert twice == apply(files, run(files, policy))
    assert not run(twice, policy).edits
