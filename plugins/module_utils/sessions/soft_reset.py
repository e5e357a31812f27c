# SPDX-License-Identifier: BSD-2-Clause
"""What is left of the soft limits of a session that SELinux resets."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.values import NamedTuple, Rlimit


class SoftReset(NamedTuple):
    """From which type to which shells lose their soft limits, and at which they start.

    ``soft`` are those of the kernel, by item; a hard limit that is lower counts before them.
    """

    source: str
    targets: tuple[str, ...]
    soft: Mapping[str, int]


def apply_reset(limits: Mapping[str, Rlimit], reset: SoftReset | None) -> dict[str, Rlimit]:
    """Return what a shell starts with of what PAM has set."""
    if reset is None:
        return dict(limits)
    return {
        item: Rlimit(min(limit.hard, reset.soft.get(item, limit.soft)), limit.hard)
        for item, limit in limits.items()
    }
