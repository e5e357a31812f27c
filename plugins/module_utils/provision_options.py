# SPDX-License-Identifier: BSD-2-Clause
"""How a policy is made true: what is asked of a run besides the policy itself."""

from __future__ import annotations

from typing import NamedTuple

from .policy.plan_kernel import KernelOptions
from .policy.plan_sessions import SessionsOptions

SECTIONS = (
    "kernel",
    "sessions",
    "services",
    "containerd",
    "docker",
    "podman",
    "slurm",
    "shared_memory",
)
"""In the order of writing: fs.nr_open must be up before a nofile may use it."""


class Options(NamedTuple):
    """How a policy is made true."""

    sections: tuple[str, ...] = SECTIONS
    absent: bool = False
    override: bool = False
    sessions_file: str = SessionsOptions().target
    kernel_file: str = KernelOptions().target
    services_restart: tuple[str, ...] = ()
    docker_restart: bool = False
    containerd_restart: bool = False
    slurm_restart: bool = False
    slurm_conf: bool = False
    check_mode: bool = False
