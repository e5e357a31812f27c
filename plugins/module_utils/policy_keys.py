# SPDX-License-Identifier: BSD-2-Clause
"""Every key that a policy may have, for whoever tells of all of them: readers load their own."""

from __future__ import annotations

from .core.keys import Key
from .core.waivers import WAIVER
from .places import PLACES

_GROUPS = {"containers": "what containers get from their engines", "jobs": "batch jobs"}
"""The keys that hold several places."""


def list_sections() -> dict[str, Key]:
    """Return what stands at the top of a policy, by key."""
    sections: dict[str, Key] = {}
    for place in PLACES:
        top, _dot, name = place.path.partition(".")
        key = place.describe_key()
        if name:
            below = sections[top].below if top in sections else {}
            key = Key("mapping", _GROUPS[top], below={**below, name: key})
        sections[top] = key
    return {**sections, "waivers": Key("list", "what may fall short, and until when", below=WAIVER)}
