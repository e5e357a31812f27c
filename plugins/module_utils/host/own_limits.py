# SPDX-License-Identifier: BSD-2-Clause
"""The resource limits of this very process."""

from __future__ import annotations

import resource
from collections.abc import Mapping

from ..core.values import ITEMS, RLIMITS, Rlimit


def set_own_limits(limits: Mapping[str, Rlimit]) -> None:
    """Give this process the limits of another.

    :raises ValueError: If the kernel refuses one.
    """
    own = read_own_limits()
    for name, wanted in limits.items():
        if own[name] != wanted:
            soft, hard = (value - 2**64 if value >= 2**63 else value for value in wanted)
            try:
                resource.setrlimit(ITEMS[name].resource or 0, (soft, hard))
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"{name} {soft}:{hard} cannot be inherited here: {error}"
                ) from None


def read_own_limits() -> dict[str, Rlimit]:
    """Return the limits of this process."""
    pairs = ((name, resource.getrlimit(ITEMS[name].resource or 0)) for name in RLIMITS)
    # Python reads the kernel's unsigned numbers as signed ones.
    return {name: Rlimit(*(value % 2**64 for value in pair)) for name, pair in pairs}
