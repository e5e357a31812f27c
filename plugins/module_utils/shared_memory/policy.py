# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of the host's /dev/shm."""

from __future__ import annotations

from ..core.reader import Key, read_mapping, read_quantity
from ..core.values import UNLIMITED

KEYS = {"size": Key("size above 0", "what /dev/shm of the host has at least")}


def read_shared_memory(raw: object, problems: list[str]) -> int | None:
    """Read the section ``shared_memory``: the bytes that it must have at least."""
    section = read_mapping("shared_memory", raw, KEYS, problems)
    if "size" not in section:
        return None
    size = read_quantity("shared_memory.size", section["size"], "bytes", problems)
    if size in (0, UNLIMITED):
        problems.append("shared_memory.size: a size above 0 is accepted")
    return size
