# SPDX-License-Identifier: BSD-2-Clause
"""Keep a measurement until the next boot, for as long as what decides it stays the same."""

from __future__ import annotations

import json
import os

FOLDER = "/run/mlhost-limits"


def read_cached(name: str, key: str, folder: str = FOLDER) -> object | None:
    """Return what was kept under this key; ``None`` where nothing usable is there."""
    try:
        with open(f"{folder}/{name}.json", encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None  # Somebody else's word is no measurement of ours.
            kept = json.load(file)
    except (OSError, ValueError):
        return None
    return kept.get("content") if isinstance(kept, dict) and kept.get("key") == key else None


def keep_cached(name: str, key: str, content: object, folder: str = FOLDER) -> None:
    """Keep something that json can write; failing to is no harm, it is measured again then."""
    from ..policy.edit import Edit  # Where the kept one still holds, nothing is written.
    from ..probe.files import read_bytes
    from .replace import apply_edits, commit_edits

    text = json.dumps({"key": key, "content": content})
    path = f"{folder}/{name}.json"
    try:
        edit = Edit(path, read_bytes(path), text.encode("utf-8"), mode=0o600)
        commit_edits(apply_edits([edit]))
    except OSError:
        return
