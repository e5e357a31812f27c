# SPDX-License-Identifier: BSD-2-Clause
"""Blame SELinux, where it takes from a shell what PAM gave, and say how to allow it."""

from __future__ import annotations

from ..core.cause import Cause, Remedy, append_line
from .soft_reset import SoftReset

CODES = {
    "selinux-resets-soft-limits": "SELinux does not let a daemon pass its soft limits on to shells",
}


def blame_reset(reset: SoftReset) -> Cause:
    """Return the cause; its remedy is a module of a rule for each, which a boot keeps."""
    text = (
        f"SELinux does not let {reset.source} pass soft limits on to {' and '.join(reset.targets)}"
        " (rlimitinh): shells start with the kernel's own"
    )
    # There semodule(8) may read it, and not below /etc.
    file = f"/usr/local/share/limits_{reset.source}.cil"
    commands = [
        command
        for target in reset.targets
        for command in append_line(
            file, f"(allow {reset.source} {target} (process (rlimitinh)))"
        ).commands
    ]
    load = ("semodule", "-i", file)
    remedy = Remedy("allow it by a module of SELinux's policy", (*commands, load), "log in again")
    return Cause("selinux-resets-soft-limits", text, remedy)
