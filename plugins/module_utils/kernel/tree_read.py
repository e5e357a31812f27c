# SPDX-License-Identifier: BSD-2-Clause
"""What decides sysctls at the first boot of a tree, each read once."""

from __future__ import annotations

from functools import cached_property

from ..core.cause import cite
from ..core.values import Declaration
from ..host.files import leave_out_run
from .boot_read import BootRead
from .diagnose import gather_key
from .host_read import read_sysctl_files
from .model import Forecast, predict_boot
from .sysctl_conf import LARGEST_NR_OPEN, SYSCTL_DIRECTORIES, parse_sysctl_number

_NR_OPEN = "fs.nr_open"


def read_tree_files(root: str) -> dict[str, str]:
    """Return the files of sysctl.d(5) that a boot of a tree finds: its /run is empty then."""
    return read_sysctl_files(root, leave_out_run(SYSCTL_DIRECTORIES, root))


class TreeBoot(BootRead):
    """What decides sysctls at the first boot of a tree: nothing of the machine that looks."""

    command_line = ""
    passing: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()

    def __init__(self, root: str) -> None:
        super().__init__(read_tree_files(root), root)

    def is_read_only(self, key: str) -> bool:
        """Tell that the host to come may write every key."""
        del key
        return False

    @property
    def weighed_scripts(self) -> dict[str, str]:
        """Return all scripts: none of them has run."""
        return self.all_scripts

    @property
    def nr_open(self) -> int:
        """The least that fs.nr_open may be once services start; 0 where that is not known."""
        return min(self._nr_opens, default=0)

    @property
    def nr_open_at_most(self) -> int:
        """The most that it may be."""
        return max(self._nr_opens, default=LARGEST_NR_OPEN)

    @property
    def nr_open_line(self) -> Declaration | None:
        """What states it last, if anything does."""
        return self._nr_open.by

    @property
    def nr_open_doubt(self) -> str:
        """Say what fs.nr_open may be, where that is not sure."""
        by = f", by {cite(self.nr_open_line)}" if self.nr_open_line else ""
        if not self._nr_opens:
            return f"fs.nr_open may be anything{by}"
        return f"fs.nr_open may be {self.nr_open} or {self.nr_open_at_most}{by}"

    @cached_property
    def _nr_open(self) -> Forecast:
        return predict_boot(gather_key(_NR_OPEN, self, self.find_start(_NR_OPEN)))

    @property
    def _nr_opens(self) -> list[int]:
        known = [parse_sysctl_number(value) for value in self._nr_open.values]
        return [] if None in known else [value for value in known if value]
