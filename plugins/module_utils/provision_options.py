# SPDX-License-Identifier: BSD-2-Clause
"""How a policy is made true: what is asked of a run besides the policy itself."""

from __future__ import annotations

from typing import NamedTuple

from .kernel.sysctl_conf import DROP_IN as KERNEL_FILE
from .sessions.pam_limits import DROP_IN as SESSIONS_FILE


class Options(NamedTuple):
    """How a policy is made true."""

    sections: tuple[str, ...] | None = None
    """``None`` for every one."""
    absent: bool = False
    override: bool = False
    sessions_file: str = SESSIONS_FILE
    kernel_file: str = KERNEL_FILE
    services_restart: tuple[str, ...] = ()
    docker_restart: bool = False
    containerd_restart: bool = False
    slurm_restart: bool = False
    slurm_conf: bool = False
    check_mode: bool = False

    def wants(self, name: str) -> bool:
        """Tell whether a section is asked for."""
        return self.sections is None or name in self.sections
