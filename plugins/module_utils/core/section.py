# SPDX-License-Identifier: BSD-2-Clause
"""What one part of a policy wants of a host, besides the kernel's values and the logins' files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .plan import SectionPlan


class Section(NamedTuple):
    """The plan of one section, and how it comes into effect.

    ``restarts`` are the units that must be restarted for it, ``settle`` does what is allowed of
    that and returns why something does not run any more; ``None`` where nothing is to be done.
    ``find_old`` lists, after the writing, what goes on with less than the policy asks for.
    """

    plan: SectionPlan = SectionPlan()
    restarted: tuple[str, ...] = ()
    restart_required: tuple[str, ...] = ()
    settle: Callable[[], str] | None = None
    running: tuple[tuple[str, str, str], ...] = ()
    """Running values that ``settle`` changes: what, before, after."""
    find_old: Callable[[], Iterable[str]] = tuple
    in_effect: tuple[str, ...] = ()
    """The sections of a check that can be met now."""
