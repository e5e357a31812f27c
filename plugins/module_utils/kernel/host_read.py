# SPDX-License-Identifier: BSD-2-Clause
"""What a host's kernel and its files of sysctl.d(5) say, each read once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from ..core.values import RLIMITS, UNLIMITED, Declaration, Rlimit
from ..host.booted import is_chroot
from ..host.files import list_folder, read_text
from ..host.look import Look, read_limits
from .boot_read import BootRead
from .read import read_sysctl
from .sysctl_conf import NR_OPEN_OF_KERNEL, SYSCTL_DIRECTORIES, find_boot_default, find_number
from .sysctl_writes import find_lowest_nr_open, resolve_sysctl

_NR_OPEN = "fs.nr_open"


class KernelRead:
    """One look at one kernel."""

    @cached_property
    def nr_open(self) -> int:
        if is_chroot():
            return NR_OPEN_OF_KERNEL  # The one that runs is of the machine that builds this image.
        return int(read_sysctl(_NR_OPEN) or 0)

    @cached_property
    def nr_open_at_boot(self) -> int:
        """Return the lowest fs.nr_open from now on: the running one, or what a boot gives."""
        running = {_NR_OPEN: read_sysctl(_NR_OPEN)}
        return find_lowest_nr_open(self.sysctl_files, running) or self.nr_open

    @cached_property
    def limits_of_pid_1(self) -> dict[str, Rlimit]:
        if is_chroot():  # Its own first process will have all that it may raise to.
            most = dict.fromkeys(RLIMITS, Rlimit(UNLIMITED, UNLIMITED))
            return {**most, "nofile": Rlimit(self.nr_open, self.nr_open)}
        return read_limits(1)

    @cached_property
    def sysctl_files(self) -> dict[str, str]:
        return read_sysctl_files()

    @cached_property
    def boot(self) -> BootRead:
        return BootRead(self.sysctl_files)


def find_nr_open_line(look: Look) -> Declaration | None:
    """Return the line that sets fs.nr_open at boot."""
    bound = resolve_sysctl(look.at(KernelRead).sysctl_files, [_NR_OPEN]).get(_NR_OPEN)
    line = bound.winner if bound else None
    number = find_number(line) if line else None
    return line._replace(value=number) if line and number is not None else None


def find_nr_open_at_boot(look: Look) -> int:
    """Return what fs.nr_open will be after a boot."""
    line = find_nr_open_line(look)
    if line:
        return int(line.value)
    return find_boot_default(_NR_OPEN, look.at(KernelRead).nr_open) or look.at(KernelRead).nr_open


def read_sysctl_files(
    root: str = "/", folders: Iterable[str] = SYSCTL_DIRECTORIES
) -> dict[str, str]:
    """Return every file in the folders of sysctl.d(5), by path.

    A link that hangs is empty here: it hides its namesakes all the same.
    """
    return {
        f"{folder}/{name}": read_text(f"{folder}/{name}", root) or ""
        for folder in folders
        for name in list_folder(folder, root)
        if name.endswith(".conf")
    }
