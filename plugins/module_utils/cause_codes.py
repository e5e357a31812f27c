# SPDX-License-Identifier: BSD-2-Clause
"""Every code of a cause, with what it means and the place that it is about."""

from __future__ import annotations

from .places import EXPLAINED, PLACES

CODES: dict[str, tuple[str, str]] = {
    code: (about, text)
    for place in PLACES
    for about, codes in place.codes()
    for code, text in codes.items()
}
"""By each code its place, as ``explain`` takes it where it does, and what it means."""


def describe_code(code: str) -> list[str]:
    """Return what a code means, and how to look further.

    :raises ValueError: If there is none of that name, with those of a name near it.
    """
    if code not in CODES:
        raise ValueError(f"{code!r} is not a code of a cause; {_name_near(code)}")
    place, text = CODES[code]
    lines = [f"{code}: {text}", f"in {place}"]
    if place in EXPLAINED:
        lines.append(f"what sets it there: mlhost-limits explain {place} ITEM")
    return lines


def _name_near(code: str) -> str:
    from difflib import get_close_matches  # Slow to load, and of a slip alone.

    near = [one for one in CODES if code in one][:3] or get_close_matches(code, CODES)
    return f"near it are {', '.join(near)}" if near else "a check names them with --json"
