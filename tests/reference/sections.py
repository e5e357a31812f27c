# SPDX-License-Identifier: GPL-3.0-or-later
"""Every key that a policy may have, out of the rows that its readers use."""

from __future__ import annotations

import importlib

from mlhost_limits.core.reader import Key
from mlhost_limits.core.waivers import WAIVER
from mlhost_limits.places import PLACES

_GROUPS = {"containers": "what containers get from their engines", "jobs": "batch jobs"}
"""The keys that hold several places."""


def list_sections() -> dict[str, Key]:
    """Return what stands at the top of a policy, by key."""
    sections: dict[str, Key] = {}
    for place in PLACES:
        folder = type(place).__module__.rpartition(".")[0]
        keys = importlib.import_module(f"{folder}.policy").KEYS
        key = Key(place.kind, place.about, below=keys)
        top, _dot, name = place.path.partition(".")
        if name:
            below = sections[top].below if top in sections else {}
            key = Key("mapping", _GROUPS[top], below={**below, name: key})
        sections[top] = key
    return {**sections, "waivers": Key("list", "what may fall short, and until when", below=WAIVER)}
