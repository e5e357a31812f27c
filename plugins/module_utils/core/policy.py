# SPDX-License-Identifier: BSD-2-Clause
"""What a host owes its jobs, by place, and what may fall short for a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .waivers import Waiver


class Policy(NamedTuple):
    """What a host owes its jobs. Of what is not stated, nothing is asked."""

    asked: Mapping[str, Any] = {}
    """By the name of the place; its ``policy.py`` has the type."""
    waivers: tuple[Waiver, ...] = ()

    def get(self, name: str) -> Any:
        """Return what is asked of a place; ``None`` where it is nothing."""
        return self.asked.get(name)
