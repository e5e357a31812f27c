# SPDX-License-Identifier: BSD-2-Clause
"""Keep a measurement until the next boot, for as long as what decides it stays the same."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from ..host.door import open_file, read_handle
from ..host.files import LARGEST, read_bytes

FOLDER = "/run/mlhost-limits"


def read_cached(name: str, key: str, folder: str = FOLDER) -> object | None:
    """Return what was kept under this key; ``None`` where nothing usable is there."""
    return pick(read_entry(name, folder), key)


def read_entry(name: str, folder: str = FOLDER) -> object | None:
    """Return what was kept, with its key; ``None`` where it is not root's or no JSON."""
    try:
        handle = open_file(f"{folder}/{name}.json")
        if os.fstat(handle).st_uid not in (0, os.geteuid()):
            os.close(handle)
            return None  # Somebody else's word is not a measurement of ours.
        kept: object = json.loads(read_handle(handle, LARGEST, name))
    except (OSError, ValueError, RecursionError):
        return None
    return kept


def pick(entry: object, key: str) -> object | None:
    """Return the content of an entry that was kept under this key."""
    return entry.get("content") if isinstance(entry, dict) and entry.get("key") == key else None


def keep_cached(name: str, key: str, content: object, folder: str = FOLDER) -> None:
    """Keep something that JSON can carry; failing to is no harm, it is measured again then."""
    keep_entry(name, {"key": key, "content": content}, folder)


def keep_entry(name: str, entry: object, folder: str = FOLDER) -> None:
    """Keep an entry with its key, if that can be done."""
    with suppress(OSError):
        write_entry(name, entry, folder)


def write_entry(name: str, entry: object, folder: str = FOLDER) -> None:
    """Write an entry.

    :raises OSError: If it cannot be written whole; an older one is as it was.
    """
    from ..core.edit import Edit  # Where the kept one still holds, nothing is written.
    from .replace import apply_edits, commit_edits

    text = json.dumps(entry)
    path = f"{folder}/{name}.json"
    edit = Edit(path, read_bytes(path), text.encode("utf-8"), mode=0o600)
    commit_edits(apply_edits([edit]))
