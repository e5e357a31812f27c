# SPDX-License-Identifier: BSD-2-Clause
"""How a policy is made true: what is asked of a run besides the policy itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .named import NamedTuple


class Switch(NamedTuple):
    """An option of ``provision`` that concerns one place alone, as its argument spec has it."""

    type: str
    default: object


class Options(NamedTuple):
    """How a policy is made true."""

    sections: tuple[str, ...] | None = None
    """``None`` for every one."""
    absent: bool = False
    override: bool = False
    check_mode: bool = False
    switches: Mapping[str, Any] = {}
    """What a run chooses of the places' switches, by name."""

    def wants(self, name: str) -> bool:
        """Tell whether a section is asked for."""
        return self.sections is None or name in self.sections
