# SPDX-License-Identifier: BSD-2-Clause
"""What decides sysctls at the first boot of a tree, each read once."""

from __future__ import annotations

from functools import cached_property

from .boot_read import BootRead
from .diagnose import gather_key
from .host_read import read_sysctl_files
from .model import predict_boot
from .sysctl_conf import parse_sysctl_number

_NR_OPEN = "fs.nr_open"


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

    @property
    def nr_open(self) -> int:
        """The least that fs.nr_open may be once services start; 0 where that is not known."""
        return min(self._nr_opens, default=0)

    @property
    def nr_open_at_most(self) -> int | None:
        """The most that it may be; nothing where that is not known."""
        return max(self._nr_opens, default=None)

    @cached_property
    def _nr_opens(self) -> list[int]:
        start = self.find_start(_NR_OPEN)
        values = predict_boot(gather_key(_NR_OPEN, self, start)).values
        known = [parse_sysctl_number(value) for value in values]
        return [] if None in known else [value for value in known if value]
