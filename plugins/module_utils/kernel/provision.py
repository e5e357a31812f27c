# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel's section needs here: files of sysctl.d(5), and values that change at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..core.plan import Section
from ..host.image import is_image
from .host_read import read_sysctl_files
from .plan import KernelOptions, plan_kernel
from .policy import KernelValue
from .read import read_sysctl
from .sysctl_writes import find_lowest_nr_open

_NR_OPEN = "fs.nr_open"


def prepare_kernel(wanted: Mapping[str, KernelValue], options: KernelOptions) -> Section:
    """Return what the section needs here, and the fs.nr_open that all others may count on."""
    running = _read_running({*wanted, _NR_OPEN})
    plan = plan_kernel(wanted, read_sysctl_files(), running, options)
    return Section(
        plan.section,
        in_effect=("kernel",),
        sysctls=tuple((key, running[key] or "", value) for key, value in plan.writes),
        nr_open=plan.nr_open,
    )


def leave_kernel() -> Section:
    """Return the fs.nr_open that the host's own files and its kernel give."""
    lowest = find_lowest_nr_open(read_sysctl_files(), _read_running([_NR_OPEN]))
    return Section(nr_open=lowest)


def _read_running(keys: Iterable[str]) -> dict[str, str | None]:
    """Return the kernel's values: those in force, or those an image's own kernel starts with."""
    if not is_image():
        return {key: read_sysctl(key) for key in keys}
    from .boot_read import BootRead  # Of no use on a host that runs.

    boot = BootRead({})
    return {key: boot.find_start(key) for key in keys}
