# SPDX-License-Identifier: BSD-2-Clause
"""Read of a tree that will be a host what decides sysctls at its first boot."""

from __future__ import annotations

from functools import cached_property

from .boot_read import BootRead
from .files_read import read_sysctl_files
from .sysctl_writes import find_lowest_nr_open


class TreeBoot(BootRead):
    """What decides sysctls at the first boot of a tree: nothing of the machine that looks."""

    command_line = ""
    passing: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()

    def __init__(self, root: str) -> None:
        super().__init__(read_sysctl_files(root), root)

    def is_read_only(self, key: str) -> bool:
        """Tell that the host to come may write every key."""
        del key
        return False

    @cached_property
    def nr_open(self) -> int:
        """The lowest fs.nr_open of the boot, 0 where the files do not tell."""
        start = {"fs.nr_open": self.find_start("fs.nr_open")}
        return find_lowest_nr_open(self.files, start) or 0
