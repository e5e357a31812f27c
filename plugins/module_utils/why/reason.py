# SPDX-License-Identifier: BSD-2-Clause
"""What a reason of a run's end is, whether a limit or not."""

from __future__ import annotations

from ..core.values import NamedTuple


class Reason(NamedTuple):
    """One thing that a run can die of.

    ``item`` is the limit as check names it, empty where check judges none. ``text`` says what it
    is, ``tell`` how it is told from what says the same, ``way`` what to do where check has no line
    at fault.
    """

    code: str
    text: str
    tell: str
    way: str = ""
    item: str = ""
    is_limit: bool = True


def limit(code: str, item: str, text: str, tell: str, way: str = "") -> Reason:
    """Return a limit of the host."""
    return Reason(code, text, tell, way, item)


def no_limit(code: str, text: str, way: str, tell: str = "") -> Reason:
    """Return what is mistaken for a limit; ``tell`` is empty where no limit says the same."""
    return Reason(code, text, tell, way, is_limit=False)
