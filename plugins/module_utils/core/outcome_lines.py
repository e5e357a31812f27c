# SPDX-License-Identifier: BSD-2-Clause
"""Write what a run of ``provision`` did, or would do, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff
from typing import Any

from .report import wrap

_MARGIN = 11
_WIDER = 14


def format_outcome(
    told: Mapping[str, Any], is_check: bool = False, shows_diff: bool = False
) -> list[str]:
    """Return what changed, what is still to do and what is worth knowing, in this order.

    :param told: As the module ``provision`` returns it.
    :param is_check: Whether nothing was changed.
    :param shows_diff: Whether to show each change line by line.
    """
    would, margin = ("would ", _WIDER) if is_check else ("", _MARGIN)
    done = "restart" if is_check else "restarted"
    lines = list(_list_under(f"{would}change" if is_check else "changed", told["files"], margin))
    values = [f"{one['key']} {one['before']} -> {one['after']}" for one in told["sysctls"]]
    lines += _list_under(f"{would}set", values, margin)
    if shows_diff:
        for one in told["diff"]:
            lines += format_diff(one)
    lines += _list_under(f"{would}{done}", told["restarted"], margin)
    lines += _list_under("would raise" if is_check else "raised", told["raised"], margin)
    if not told["changed"]:
        lines.append("nothing to change")
    waiting = [f"{name}, before all of it is in effect" for name in told["restart_required"]]
    lines += _list_under("restart", waiting, margin)
    lines += _list_under("short", told["shortfalls"], margin)
    lines += _list_under("old", told["old_limits"], margin)
    return [*lines, *_list_under("note", told["notes"], margin)]


def _list_under(mark: str, texts: Iterable[str], margin: int) -> Iterator[str]:
    """Yield each text behind a mark, which stands there once."""
    start = mark.ljust(margin)
    for text in texts:
        yield from wrap(text, start, " " * margin)
        start = " " * margin


def format_diff(change: Mapping[str, str]) -> list[str]:
    """Return a change as ``diff -u`` shows it."""
    before, after = (change[key].splitlines() for key in ("before", "after"))
    names = (change["before_header"], change["after_header"])
    return list(unified_diff(before, after, *names, lineterm=""))
